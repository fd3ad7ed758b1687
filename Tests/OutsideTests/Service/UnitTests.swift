import Foundation
import Glibc
import Harness
import Testing

extension Outside {
    @Suite("The systemd units")
    struct UnitTests {
        private static let units = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "deploy/systemd")
        private static let unit =
            (try? String(contentsOf: units.appending(path: "nuthatch.service"), encoding: .utf8))
            ?? ""

        private static let manager = try? Program.find("systemd-analyze")

        private func values(_ name: String) -> [String] {
            Self.unit.split(separator: "\n").filter { $0.hasPrefix(name + "=") }
                .map { String($0.dropFirst(name.count + 1)) }
        }

        @Test("systemd accepts every line of the units", .enabled(if: UnitTests.manager != nil))
        func verified() throws {
            let folder = try TemporaryFolder()
            let file = folder.appending(path: "nuthatch.service")
            // A user that every machine has.
            try Self.unit.replacing("/usr/bin/nuthatch", with: NodeProcess.binary())
                .replacing("User=nuthatch", with: "User=daemon")
                .write(to: file, atomically: true, encoding: .utf8)
            let socket = folder.appending(path: "nuthatch.socket")
            try FileManager.default.copyItem(
                at: Self.units.appending(path: "nuthatch.socket"), to: socket)
            let check = try Program.run(
                try #require(Self.manager), ["verify", "--man=no", file.path, socket.path])
            #expect(check.status == 0 && check.errors.isEmpty, "\(check.errors)")
        }

        @Test("Under the unit's restrictions a node binds a low port and reads a key of mode 600")
        func served() throws {
            let capability = "CAP_NET_BIND_SERVICE"
            #expect(values("CapabilityBoundingSet") == [capability])
            #expect(values("AmbientCapabilities") == [capability])
            #expect(!values("PrivateUsers").contains("yes"), "the capability would be void")
            #expect(values("LoadCredential") == ["secret:/etc/nuthatch/secrets"])
            guard geteuid() == 0 else { return }

            let folder = try TemporaryFolder(isOpen: true)
            let (user, manager) = (UInt32(65_534), FileManager.default)
            let authority = try TestAuthority()
            defer { withExtendedLifetime(authority) {} }
            let leaf = try authority.leaf("localhost")
            // Like systemd credentials: owned by the user, in a directory of their own.
            let secrets = folder.appending(path: "credentials")
            try manager.createDirectory(at: secrets, withIntermediateDirectories: false)
            for (name, path) in [("certificate", leaf.certificate), ("key", leaf.key)] {
                let file = secrets.appending(path: "secret_\(name)")
                try manager.copyItem(atPath: path, toPath: file.path)
                try manager.setAttributes([.posixPermissions: 0o400], ofItemAtPath: file.path)
                #expect(unsafe chown(file.path, user, user) == 0)
            }
            #expect(unsafe chown(secrets.path, user, user) == 0)
            try manager.setAttributes([.posixPermissions: 0o500], ofItemAtPath: secrets.path)
            let (set, binary) = ("-all,+net_bind_service", folder.appending(path: "nuthatch").path)
            try manager.copyItem(atPath: NodeProcess.binary(), toPath: binary)
            let node = try Program(
                try Program.find("setpriv"),
                [
                    "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "--inh-caps=\(set)",
                    "--ambient-caps=\(set)", "--bounding-set=\(set)", "--no-new-privs", binary,
                    "serve", "--listen", "127.43.43.1:443", "--admin-listen", "off",
                    "--tls-certificate", secrets.appending(path: "secret_certificate").path,
                    "--tls-key", secrets.appending(path: "secret_key").path,
                ])
            defer { node.kill() }
            let isServing = Deadline.seconds(30).waitUntil {
                node.errors.contains("serving") || node.wait(seconds: 0) != nil
            }
            #expect(isServing && node.wait(seconds: 0) == nil, "\(node.errors)")
            #expect(!node.errors.contains("can be read by"), "\(node.errors)")
        }
    }
}
