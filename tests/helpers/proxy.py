"""nginx before a server."""

import shutil
import socket
import subprocess
import time
from contextlib import contextmanager

import pytest

from tests.helpers.patience import PATIENCE

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
NAME = "names.example.org"
CONFIG = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{
    access_log off; {temporary}
    server {{
        listen 127.0.0.1:{port} {tls}; server_name {name}; {certificate}
        location {path}/ {{ proxy_pass {address}{stripped}; {headers} }}
    }}
}}
"""
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
PASSED = "proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Proto $scheme;"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def nginx(folder, port, address, path="", strip=True, headers="", tls=False):
    """An nginx that passes the requests below a path on to a server, with the path or without."""
    if NGINX is None:
        pytest.skip("no nginx here: apt-get install nginx")
    certificate = ""
    if tls:
        make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={NAME}"]
        files = ["-keyout", "key.pem", "-out", "cert.pem"]
        subprocess.run([*make, *files], cwd=folder, check=True, capture_output=True)
        certificate = f"ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;"
    config = CONFIG.format(
        folder=folder,
        temporary=" ".join(f"{kind}_temp_path {folder}/{kind};" for kind in TEMPORARY),
        port=port,
        tls="ssl" if tls else "",
        name=NAME,
        certificate=certificate,
        path=path,
        address=address,
        stripped="/" if strip else "",
        headers=headers,
    )
    (folder / "nginx.conf").write_text(config)
    line = [NGINX, "-p", str(folder), "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
    with subprocess.Popen(line) as process:
        end = time.monotonic() + PATIENCE
        while not listens(port):
            assert process.poll() is None and time.monotonic() < end, "nginx does not start"
            time.sleep(0.02)
        try:
            yield
        finally:
            process.terminate()


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
