#!/usr/bin/env python3
"""Checks the signing recipes with the vectors of the specification and with `nuthatch sign`:
signing.py [FILE…], by default all.

A recipe whose compiler is not installed is skipped and named. Swift's is linked with OpenSSL's HMAC in
place of swift-crypto, which is not part of the toolchain.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

from recipe import HERE, TOP, node_program

SECRET = "0123456789abcdef0123456789abcdef"
SPECIFICATION = TOP / "Sources/HTTPRules/HTTPRules.docc/SignedURLs.md"
URLS = [
    "http://a.example", "HTTP://A.Example.:80/?", "https://a.example:443/b/../c/./d/..",
    "http://a.example:8080/%7e%2f%2e%2E/x", "http://a.example/..//../b?c=d&e=|\"<>#f",
    "http://a.example/ü %41?q=%7c%c3%bc+ü", "http://[2001:DB8:0:0::1]:80/a",
    "http://192.0.2.1/a'b(c)*!?/?[]{}", "http://a_b.example:00080//a//",
    "http://a.example/a;b=c,d@e:f$g&h?\\^`", "http://a.example/%2525?%26",
]
REFUSED = ["ftp://a/", "http://", "http://a/%zz", "http://u@a/", "http://a\n/", "http://ü/"]

# The part of swift-crypto that Sign.swift uses, from OpenSSL's library.
CRYPTO = """
import Foundation
@_silgen_name("EVP_sha256") func evpSHA256() -> OpaquePointer
@_silgen_name("HMAC") func hmac(
    _: OpaquePointer, _: UnsafePointer<UInt8>, _: CInt, _: UnsafePointer<UInt8>, _: Int,
    _: UnsafeMutablePointer<UInt8>, _: UnsafeMutablePointer<CUnsignedInt>) -> OpaquePointer?
public struct SymmetricKey {
    let bytes: [UInt8]
    public init(data: Data) { bytes = Array(data) }
}
public enum SHA256 {}
public enum HMAC<Hash> {
    public static func authenticationCode(for data: Data, using key: SymmetricKey) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: 32)
        var count: CUnsignedInt = 0
        let text = Array(data)
        _ = hmac(evpSHA256(), key.bytes, CInt(key.bytes.count), text, text.count, &code, &count)
        return code
    }
}
"""


def build(folder):
    """The command of each recipe by its file, and the reason for each that is skipped."""
    recipes, skipped = {}, {}

    def need(name, *programs):
        if sys.argv[1:] and name not in sys.argv[1:]:
            return False
        missing = [program for program in programs if not shutil.which(program)]
        if missing:
            skipped[name] = f"{missing[0]} is not installed"
        return not missing

    def run(name, *words, **options):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
        if done.returncode:
            sys.exit(f"{name}: does not compile\n{done.stdout}{done.stderr}")

    if need("sign.py", "python3"):
        recipes["sign.py"] = ["python3", HERE / "sign.py"]
    if need("sign.mjs", "node"):
        recipes["sign.mjs"] = ["node", HERE / "sign.mjs"]
    if need("sign.ts", "node", "tsc"):
        run("sign.ts", "tsc", "--strict", "--target", "es2020", "--module", "commonjs", "--lib", "es2020,dom",
            "--outDir", folder, HERE / "sign.ts")
        recipes["sign.ts"] = ["node", folder / "sign.js"]
    if need("sign.go", "go"):
        run("sign.go", "go", "build", "-o", folder / "sign-go", HERE / "sign.go",
            env={**os.environ, "GO111MODULE": "off", "GOCACHE": str(folder / "go"), "GOFLAGS": ""})
        recipes["sign.go"] = [folder / "sign-go"]
    if need("Sign.swift", "swiftc"):
        (folder / "Crypto.swift").write_text(CRYPTO)
        crypto = next(iter(sorted(pathlib.Path("/usr/lib").glob("*/libcrypto.so.*"))), None)
        if crypto is None:
            skipped["Sign.swift"] = "libcrypto is not installed"
        else:
            run("Sign.swift", "swiftc", "-parse-as-library", "-emit-library", "-emit-module", "-module-name",
                "Crypto", "-o", folder / "libCrypto.so", folder / "Crypto.swift", "-Xlinker", crypto,
                cwd=folder)
            run("Sign.swift", "swiftc", "-parse-as-library", "-I", folder, "-L", folder, "-lCrypto", "-Xlinker",
                crypto, "-Xlinker", "-rpath", "-Xlinker", folder, "-o", folder / "sign-swift",
                HERE / "Sign.swift", cwd=folder)
            recipes["Sign.swift"] = [folder / "sign-swift"]
    if need("Sign.kt", "kotlinc", "java"):
        run("Sign.kt", "kotlinc", "-nowarn", HERE / "Sign.kt", "-include-runtime", "-d", folder / "sign.jar")
        recipes["Sign.kt"] = ["java", "-jar", folder / "sign.jar"]
    return recipes, skipped


def sign(command, *words):
    return subprocess.run([*map(str, command), *words], capture_output=True, text=True,
                          env={**os.environ, "NUTHATCH_SIGNING_KEY": SECRET})


def vectors():
    """The rows of the specification's table: target, expiry, signature."""
    rows = re.findall(r"^\| `([^`]+)` \| (?:`(\d+)`)? *\| `([^`]+)` \|$", SPECIFICATION.read_text(), re.M)
    assert len(rows) >= 4, "no vectors found"
    return rows


def check(name, command, expected):
    faults = []
    for target, expires, signature in vectors():
        kind, place, url = ("image", "http://n", target)
        if target.startswith("//"):
            kind, place, url = "site", target[2:].split("/")[0], "https:" + target
        made = sign(command, kind, place, url, *([expires] if expires else []))
        if not made.stdout.strip().endswith("signature=" + signature):
            faults.append(f"{target}: {made.stdout}{made.stderr}")
    for (url, expires), reference in expected.items():
        made = sign(command, "image", "http://n", url, *([expires] if expires else []))
        if urllib.parse.unquote(made.stdout) != urllib.parse.unquote(reference):
            faults.append(f"{url}: {made.stdout or made.stderr} instead of {reference}")
    for url in REFUSED:
        if sign(command, "image", "http://n", url).returncode != 1:
            faults.append(f"{url!r} is not refused")
    passed = "FAIL" if faults else "ok  "
    print(f"signing    {passed} {name}: {len(vectors())} vectors, {len(expected)} URLs as nuthatch sign, "
          f"{len(REFUSED)} refused", flush=True)
    for fault in faults[:5]:
        print("          ", fault)
    return not faults


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "keys").touch(0o600)
        (folder / "keys").write_text(SECRET)
        expected = {}
        for url in URLS:
            for expires in ("", "4102444800"):
                made = subprocess.run(
                    [node_program(), "sign", "--signing-key-file", folder / "keys", "--base", "http://n",
                     *(["--expires-at", expires] if expires else []), url],
                    capture_output=True, text=True, check=True)
                expected[url, expires] = made.stdout
        recipes, skipped = build(folder)
        good = [check(name, command, expected) for name, command in recipes.items()]
        for name, why in skipped.items():
            print(f"signing    skipped: {name}: {why}")
        sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
