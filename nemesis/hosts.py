"""Machines in one machine: each host is a network namespace with an address on a private switch and a disk of its own.

Needs root and iproute2, nothing else. The switch is a bridge in a namespace of its own, so nothing that happens here
touches the machine's network. A host's disk is a loop-mounted ext4 image, so that its power can be cut: the kernel is
told to drop what has not reached the image (EXT4_IOC_SHUTDOWN), and the next mount replays the journal.

A path between two hosts is cut by a neighbour entry with an address that nobody has. Packets then leave and never
arrive, one way, without an error for the sender: what a network that loses everything looks like.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

NOBODY = "02:00:00:00:00:01"
_EXT4_IOC_SHUTDOWN = 0x8004587D
_WITHOUT_FLUSHING_THE_JOURNAL = 2
_COMMAND_TIMEOUT_S = 60
_FILLER = "filler"
_FILLING_STEP_BYTES = 1 << 20
_BLOCK_BYTES = 4096


class HostFailed(Exception):
    """A command of the machine refused; the text says which and why."""


def run(*command: str) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S)
    if done.returncode != 0:
        raise HostFailed(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _make_image(image: Path, size_bytes: int) -> None:
    with image.open("wb") as file:
        file.truncate(size_bytes)
    run("mkfs.ext4", "-q", "-F", "-m", "0", str(image))


def _shut_down(mounted: Path) -> None:
    """Nothing is written to the file system any more, not even what it holds back."""
    descriptor = os.open(mounted, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(descriptor, _EXT4_IOC_SHUTDOWN, array.array("I", [_WITHOUT_FLUSHING_THE_JOURNAL]))
    finally:
        os.close(descriptor)


class Host:
    """One host of a `Network`: an address, a namespace, a disk."""

    def __init__(self, network: Network, name: str, number: int) -> None:
        self.name = name
        self.address = f"10.77.0.{number}"
        self.namespace = f"{network.prefix}-{name}"
        self.disk = network.directory / name
        self.image = network.directory / f"{name}.img"
        self.second_disk = network.directory / f"{name}-second"
        self.second_image = network.directory / f"{name}-second.img"
        self._hardware_address = f"02:00:00:77:00:{number:02x}"
        self._link = f"{network.prefix[-6:]}{number}"
        self._network = network

    def make(self, disk_bytes: int) -> None:
        switch = self._network.switch
        run("ip", "netns", "add", self.namespace)
        run(
            "ip",
            "link",
            "add",
            self._link,
            "netns",
            switch,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            self.namespace,
        )
        self._inside("ip", "link", "set", "eth0", "address", self._hardware_address)
        self._inside("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self._inside("ip", "link", "set", "eth0", "up")
        self._inside("ip", "link", "set", "lo", "up")
        run("ip", "-n", switch, "link", "set", self._link, "master", "switch", "up")
        if disk_bytes:
            self.disk.mkdir(parents=True)
            _make_image(self.image, disk_bytes)
            self.mount()

    def add_second_disk(self, disk_bytes: int) -> None:
        self.second_disk.mkdir(parents=True)
        _make_image(self.second_image, disk_bytes)
        run("mount", "-o", "loop", str(self.second_image), str(self.second_disk))

    def command(self, *command: str) -> list[str]:
        """A command line that runs in the host's network; the process keeps the pid."""
        return ["nsenter", f"--net=/run/netns/{self.namespace}", *command]

    def _inside(self, *command: str) -> None:
        run(*self.command(*command))

    # The network.

    def cut_off_from(self, other: Host) -> None:
        """What this host sends to ``other`` is lost from now on; the other direction is untouched."""
        self._inside("ip", "neigh", "replace", other.address, "lladdr", NOBODY, "nud", "permanent", "dev", "eth0")

    def reach_again(self, other: Host) -> None:
        self._inside("ip", "neigh", "replace", other.address, "lladdr", other._hardware_address, "dev", "eth0")

    # The disk.

    def mount(self) -> None:
        run("mount", "-o", "loop", str(self.image), str(self.disk))

    def unmount(self) -> None:
        if os.path.ismount(self.disk):
            run("umount", str(self.disk))

    def cut_power(self) -> None:
        """The disk keeps what was synced and forgets the rest. No process may use it any more; `mount` follows."""
        _shut_down(self.disk)

    def replace_disk(self) -> None:
        """The same host with an empty disk."""
        self.unmount()
        run("mkfs.ext4", "-q", "-F", "-m", "0", str(self.image))
        self.mount()

    def break_second_disk(self) -> None:
        """Whatever is written to it from now on fails; who uses it may go on trying."""
        _shut_down(self.second_disk)

    def replace_second_disk(self) -> None:
        """An empty one in its place. No process may use it any more."""
        run("umount", str(self.second_disk))
        _make_image(self.second_image, self.second_image.stat().st_size)
        run("mount", "-o", "loop", str(self.second_image), str(self.second_disk))

    def fill_disk(self, disk: Path | None = None) -> None:
        """Take all space of the disk, or of the second one, to the last block."""
        with ((disk or self.disk) / _FILLER).open("wb") as filler:
            taken, step = 0, _FILLING_STEP_BYTES
            while step >= _BLOCK_BYTES:
                try:
                    os.posix_fallocate(filler.fileno(), taken, step)
                    taken += step
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    step //= 2

    def empty_disk_again(self, disk: Path | None = None) -> None:
        ((disk or self.disk) / _FILLER).unlink(missing_ok=True)

    def remove(self) -> None:
        for disk in (self.disk, self.second_disk):
            if os.path.ismount(disk):
                subprocess.run(["umount", "--lazy", str(disk)], capture_output=True, timeout=_COMMAND_TIMEOUT_S)
        subprocess.run(["ip", "netns", "delete", self.namespace], capture_output=True, timeout=_COMMAND_TIMEOUT_S)


class Network:
    """The hosts of one run; leaving it removes namespaces, mounts and images, whatever happened."""

    def __init__(self, directory: Path, names: Sequence[str], *, clients: Sequence[str], disk_bytes: int) -> None:
        self.directory = directory
        self.prefix = f"mb{os.getpid()}"
        self.switch = f"{self.prefix}-switch"
        self.hosts = {name: Host(self, name, number) for number, name in enumerate([*names, *clients], start=1)}
        self._clients = set(clients)
        self._disk_bytes = disk_bytes

    def __enter__(self) -> Network:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            run("ip", "netns", "add", self.switch)
            run("ip", "-n", self.switch, "link", "add", "switch", "type", "bridge")
            run("ip", "-n", self.switch, "link", "set", "switch", "up")
            for name, host in self.hosts.items():
                host.make(0 if name in self._clients else self._disk_bytes)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for host in self.hosts.values():
            host.remove()
        subprocess.run(["ip", "netns", "delete", self.switch], capture_output=True, timeout=_COMMAND_TIMEOUT_S)
        shutil.rmtree(self.directory, ignore_errors=True)

    def heal(self) -> None:
        """Every host reaches every other."""
        hosts = list(self.hosts.values())
        for host in hosts:
            for other in hosts:
                if other is not host:
                    host.reach_again(other)
