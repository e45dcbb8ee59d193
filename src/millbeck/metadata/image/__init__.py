"""The state of the cluster as one immutable value.

An image is never changed: `delta.advance` makes the next one, which shares with it whatever did not change. Mappings
inside it are plain dicts typed as `Mapping`; nobody writes to them. `MetadataImage.records` writes the whole state back
as records: that is the content of a snapshot, and replaying it on `EMPTY` gives an equal image.
"""

from __future__ import annotations

from millbeck.metadata.image.client_quotas import ClientQuotasImage
from millbeck.metadata.image.cluster import BrokerRegistration, ClusterImage, ControllerRegistration, Endpoint
from millbeck.metadata.image.configs import CLUSTER_DEFAULT, ConfigResource, ConfigsImage, ResourceType
from millbeck.metadata.image.credentials import (
    AccessControlEntry,
    AclsImage,
    DelegationToken,
    DelegationTokensImage,
    ScramCredential,
    ScramImage,
)
from millbeck.metadata.image.features import FeaturesImage
from millbeck.metadata.image.metadata_image import EMPTY, MetadataImage
from millbeck.metadata.image.producer_ids import ProducerIdsImage
from millbeck.metadata.image.topics import PartitionRegistration, TopicImage, TopicsImage

__all__ = [
    "CLUSTER_DEFAULT",
    "EMPTY",
    "AccessControlEntry",
    "AclsImage",
    "BrokerRegistration",
    "ClientQuotasImage",
    "ClusterImage",
    "ConfigResource",
    "ConfigsImage",
    "ControllerRegistration",
    "DelegationToken",
    "DelegationTokensImage",
    "Endpoint",
    "FeaturesImage",
    "MetadataImage",
    "PartitionRegistration",
    "ProducerIdsImage",
    "ResourceType",
    "ScramCredential",
    "ScramImage",
    "TopicImage",
    "TopicsImage",
]
