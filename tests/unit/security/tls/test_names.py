"""Names as Java writes them, and the rules that map them: the expected values are those of Java 17's
``X500Principal.getName()`` and of ``SslPrincipalMapper`` in Kafka 4.3.1, asked with the same input.
"""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.tls import der
from millbeck.security.tls.distinguished_name import format_name
from millbeck.security.tls.principal_mapping import NoRuleApplies, PrincipalMapping

NAMES = {
    "plain": (
        "303f310b30090603550406130244453110300e060355040a0c074578616d706c65310d300b060355040b0c04556e6974310f300d06035504030c066b61666b6131",
        "CN=kafka1,OU=Unit,O=Example,C=DE",
    ),
    "escapes": (
        "3032311c301a060355040a0c13612c623d632b643c653e6623673b6822695c6a3112301006035504030c0923206c656164696e67",
        'CN=\\# leading,O=a\\,b\\=c\\+d\\<e\\>f\\#g\\;h\\"i\\\\j',
    ),
    "blanks": ("301b3119301706035504030c10202074776f2020616e642074776f2020", "CN=\\ \\ two  and two\\ \\ "),
    "blank only": ("3018310a3008060355040a0c0120310a300806035504030c0178", "CN=x,O=\\ "),
    "unicode": (
        "302731143012060355040a0c0b4772c3b6c39f6520e282ac310f300d06035504030c06e697a5e69cac",
        "CN=日本,O=Größe €",
    ),
    "email": (
        "30253114301206092a864886f70d01090116056140622e63310d300b06035504030c046d61696c",
        "CN=mail,1.2.840.113549.1.9.1=#16056140622e63",
    ),
    "all": (
        "30818831133011060a0992268993f22c64011916036f726731173015060a0992268993f22c64011916076578616d706c65310b3009060355040613024652310b300906035504080c025374310c300a06035504070c034c6f63310e300c06035504090c05537472203131143012060a0992268993f22c6401010c0475696437310a300806035504030c0163",
        "CN=c,UID=uid7,STREET=Str 1,L=Loc,ST=St,C=FR,DC=example,DC=org",
    ),
    "others": (
        "304b310b3009060355040513023432310b3009060355040c0c024472310a3008060355042a0c0147310a300806035504040c0153310b300906042a0304050c0178310a300806035504030c016f",
        "CN=o,1.2.3.4.5=#0c0178,2.5.4.4=#0c0153,2.5.4.42=#0c0147,2.5.4.12=#0c024472,2.5.4.5=#13023432",
    ),
    "multi": (
        "30343125300806035504030c016d3008060355040a0c014f300f060a0992268993f22c6401010c0175310b3009060355040613024954",
        "C=IT,CN=m+O=O+UID=u",
    ),
    "types": (
        "304831133011060355040a1e0a0062006d0070002000fc310c300a060355040b1403743631310c300a060355040716036961353115301306035504031c0c000000750000006e00000069",
        "CN=#1c0c000000750000006e00000069,L=ia5,OU=t61,O=\\00b\\00m\\00p\\00 \\00�",
    ),
    "control": ("3011310f300d06035504030c066109620d630d", "CN=a\tb\rc\\\r"),
    "empty": ("3000", ""),
}


@pytest.mark.parametrize(("encoded", "expected"), NAMES.values(), ids=NAMES.keys())
def test_a_name_reads_as_in_java(encoded: str, expected: str) -> None:
    assert format_name(der.read_only(bytes.fromhex(encoded))) == expected


REFUSED = None
SEVERAL = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L, DEFAULT"
)
RULES = [
    ("DEFAULT", "CN=kafka1,OU=u,O=o", "CN=kafka1,OU=u,O=o"),
    (
        SEVERAL,
        "CN=kafka1,OU=ServiceUsers,O=Unknown",
        "kafka1",
    ),
    (
        SEVERAL,
        "CN=KAFKA2,OU=adminUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown",
        "kafka2@adminusers",
    ),
    (
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, DEFAULT",
        "OU=x,cn=Kafka3.a,O=y",
        "KAFKA3.A",
    ),
    ("RULE:^CN=(.*?)$/$1/U", "CN=größe", "GRÖSSE"),
    ("RULE:^CN=(.*?)$/$2/", "CN=a", "$2"),
    ("RULE:^CN=(.*?)$/$12/", "CN=a", "a2"),
    ("RULE:^CN=(.*?)$/\\$1/", "CN=a", "$1"),
    ("RULE:^CN=(.*?)$/$0!/", "CN=a", "CN=a!"),
    ("RULE:^CN=(.*?)$/x\\/y$1/", "CN=a", "x/ya"),
    ("RULE:^CN=a\\/b$/yes/", "CN=a/b", "yes"),
    ("RULE:.*/x/", "CN=a", "xx"),
    ("RULE:CN=(.*)/$1/", "CN=a,OU=b", "a,OU=b"),
    ("RULE:CN=a/x/", "CN=a,OU=b", ""),
    ("RULE:CN=a/x/,DEFAULT", "CN=a,OU=b", "CN=a,OU=b"),
    ("RULE:^CN=(.*?)$/$1/L/extra", "CN=a", REFUSED),
    ("RULE:^CN=(.*?)$/$1/X", "CN=a", REFUSED),
    ("RULE:^CN=(.*?)$/$1", "CN=a", REFUSED),
    ("RULE:^CN=(.*?)$", "CN=a", REFUSED),
    ("rule", "CN=a", REFUSED),
    ("", "CN=a", ""),
    (",,DEFAULT", "CN=a", "CN=a"),
    ("DEFAULT, DEFAULT", "CN=a", "CN=a"),
    ("DEFAULT RULE:x/y/", "CN=a", REFUSED),
    ("RULE:^CN=((a)|b)$/$1$2/", "CN=b", "b"),
    ("RULE:^CN=(.*?), OU=(.*?)$/$1/", "CN=a, OU=b", "a"),
    ("RULE:^(.*)$/$1/L,RULE:^x$/y/", "CN=A", "cn=a"),
    ("RULE:([/a/", "CN=a", REFUSED),
    ("RULE:^CN=(?<name>.*?)$/${name}/", "CN=a", "a"),
]


@pytest.mark.parametrize(("rules", "name", "expected"), RULES)
def test_rules_map_as_kafka_s_do(rules: str, name: str, expected: str | None) -> None:
    """The expected value is "" where no rule applies, and `REFUSED` where the rules cannot be read."""
    if expected is REFUSED:
        with pytest.raises(InvalidConfig, match=r"ssl\.principal\.mapping\.rules"):
            PrincipalMapping(rules)
    elif not expected:
        with pytest.raises(NoRuleApplies):
            PrincipalMapping(rules).name_of(name)
    else:
        assert PrincipalMapping(rules).name_of(name) == expected
