"""Writes a container image of static binaries as an OCI archive, which docker load, podman load and skopeo read.

    oci_image.py FOLDER ARCH VERSION COMMIT EPOCH OUT

The same arguments give the same bytes. The image has the folder's binaries in /usr/bin, millrace as its entry point,
and the user 65532. The form is that of the OCI image specification 1.1: image layout, index, manifest, config and one layer.
"""
import datetime
import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile


def archive(entries, epoch):
    """Returns a tar archive. entries are (name, bytes); bytes None makes a folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.mtime = epoch
            info.mode = 0o755
            if content is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def main(folder, arch, version, commit, epoch, out):
    epoch = int(epoch)
    created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    programs = [(f"usr/bin/{path.name}", path.read_bytes()) for path in sorted(pathlib.Path(folder).iterdir())]
    layer = archive([("usr", None), ("usr/bin", None), *programs], epoch)
    blobs = []

    def descriptor(kind, content, **more):
        digest = hashlib.sha256(content).hexdigest()
        blobs.append((f"blobs/sha256/{digest}", content))
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content), **more}

    def document(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    packed = descriptor("layer.v1.tar+gzip", gzip.compress(layer, 9, mtime=0))
    config = descriptor("config.v1+json", document({
        "architecture": arch,
        "os": "linux",
        "created": created,
        "config": {
            "User": "65532:65532",
            "Entrypoint": ["/usr/bin/millrace"],
            "Labels": {"org.opencontainers.image.revision": commit, "org.opencontainers.image.version": version},
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created": created, "created_by": "tools/package/container"}],
    }))
    manifest = descriptor("manifest.v1+json", document({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [packed],
    }), platform={"architecture": arch, "os": "linux"}, annotations={
        "org.opencontainers.image.ref.name": version,
        "io.containerd.image.name": f"docker.io/library/millrace:{version}",
    })
    index = document({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]})
    with open(out, "wb") as f:
        f.write(archive([
            ("oci-layout", document({"imageLayoutVersion": "1.0.0"})), ("index.json", index),
            ("blobs", None), ("blobs/sha256", None), *blobs,
        ], epoch))


if __name__ == "__main__":
    main(*sys.argv[1:])
