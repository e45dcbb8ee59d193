"""The cluster metadata as one immutable value.

An image never changes: `delta.advance` makes the next one, which shares all unchanged parts. Mappings in it are plain
dicts typed as `Mapping` and are never written to. `MetadataImage.records` returns the whole state as records: that is
the content of a snapshot, and replaying it on `EMPTY` gives an equal image.
"""

from __future__ import annotations

from millbeck.metadata.image.client_quotas import ClientQuotasImage
from millbeck.metadata.image.cluster import BrokerRegistration, ClusterImage, ControllerRegistration, Endpoint
from millbeck.metadata.image.configs import CLUSTER_DEFAULT, ConfigResource, ConfigsImage, ResourceType
from millbeck.metadata.image.credentials import (
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
from millbeck.security.acls import AccessControlEntry

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
