import Foundation
import Harness
import Testing

extension Outside {
    @Suite("SIGHUP reloads certificates")
    struct CertificateReloadTests {
        private let image = TestImage.generated(.jpeg, byteCount: 3_000_000, seed: 630)

        /// Starts a node whose certificate is `current`, a copy that can be overwritten.
        private func stage() throws -> (SecureStage, current: TestAuthority.Leaf, folder: URL) {
            let authority = try SecureStage.authority.get()
            let folder = try Program.temporaryFolder()
            let current = TestAuthority.Leaf(
                certificate: folder.appendingPathComponent("node.pem").path,
                key: folder.appendingPathComponent("node.key").path)
            try put(try authority.leaf(name("old"), hosts: hosts), as: current)
            return (try SecureStage(certificates: [current]), current, folder)
        }

        private let hosts = [SecureStage.site, SecureStage.images]

        /// Returns a unique name; no two certificates of the shared authority may have the same
        /// name.
        private func name(_ word: String) -> String { "\(word)-\(UUID().uuidString)" }

        private func put(_ leaf: TestAuthority.Leaf, as current: TestAuthority.Leaf) throws {
            for (from, to) in [(leaf.certificate, current.certificate), (leaf.key, current.key)] {
                try Data(contentsOf: URL(fileURLWithPath: from))
                    .write(to: URL(fileURLWithPath: to), options: .atomic)
            }
        }

        private func reload(_ stage: SecureStage, _ words: String) {
            stage.node.hangUp()
            expectSoon(20) { stage.node.lineCount(containing: words) == 1 }
        }

        @Test(
            "New connections get the new certificate, and an open one continues in mid-download",
            arguments: ["--http1.1", "--http2"])
        func swapped(version: String) throws {
            let (stage, current, folder) = try stage()
            defer { try? FileManager.default.removeItem(at: folder) }
            let gate = Gate()
            stage.origin.on("/it", OriginResponse(image).stalling(at: 1_000_000, .gate(gate)))
            let running = try stage.curl.start([version, stage.image("/it")])
            #expect(gate.waitForArrivals())
            let before = try stage.openssl()
            #expect(before.subject?.hasPrefix("old") == true && before.isVerified, "\(before)")
            try put(
                try stage.authority.leaf(name("new"), hosts: hosts, key: .rsa), as: current)
            reload(stage, "settings reloaded")
            let after = try stage.openssl()
            #expect(after.subject?.hasPrefix("new") == true && after.isVerified, "\(after)")
            gate.open()
            let response = running.wait()
            let isSame = response.body == Data(image.bytes)
            #expect(isSame && response.exitStatus == 0, "\(response)")
        }

        @Test("An unusable file rejects the whole reload, and is named")
        func bad() throws {
            let (stage, current, folder) = try stage()
            defer { try? FileManager.default.removeItem(at: folder) }
            let key = try Data(contentsOf: URL(fileURLWithPath: current.key))
            let other = try stage.authority.leaf(name("other"), hosts: hosts)
            let otherKey = try Data(contentsOf: URL(fileURLWithPath: other.key))
            // A key that does not match its certificate is reported for the certificate.
            let (certificateFile, keyFile) = (current.certificate, current.key)
            let cases: [(file: String, content: Data?, named: String)] = [
                (certificateFile, Data("no certificate".utf8), certificateFile),
                (keyFile, Data(), keyFile), (keyFile, otherKey, certificateFile),
                (keyFile, nil, keyFile), (certificateFile, key, certificateFile),
            ]
            let before = try stage.openssl().subject
            for (index, (file, content, named)) in cases.enumerated() {
                let url = URL(fileURLWithPath: file)
                let good = try Data(contentsOf: url)
                if let content {
                    try content.write(to: url, options: .atomic)
                } else {
                    try FileManager.default.removeItem(at: url)
                }
                stage.node.hangUp()
                expectSoon(20) {
                    stage.node.lineCount(containing: "settings not reloaded") == index + 1
                }
                let line = stage.node.lines.last { $0.contains("settings not reloaded") }
                #expect(line?.contains(named) == true, "\(index): \(line ?? "-")")
                #expect(try stage.openssl().subject == before)
                try good.write(to: url, options: .atomic)
            }
            reload(stage, "settings reloaded")
        }

        @Test("An unusable file fails the start, and is named")
        func badAtStart() throws {
            let (stage, current, folder) = try stage()
            defer { try? FileManager.default.removeItem(at: folder) }
            let missing = current.certificate + ".missing"
            for (certificate, key, named) in [
                (missing, current.key, missing),
                (current.certificate, stage.authority.file, stage.authority.file),
                (current.key, current.key, current.key),
            ] {
                let result = try NodeProcess.run([
                    "check-config", "--tls-certificate", certificate, "--tls-key", key,
                ])
                #expect(result.status == 78, "\(result)")
                let said = String(decoding: result.output, as: UTF8.self) + result.errors
                #expect(said.contains(named), "\(said)")
            }
        }
    }
}
