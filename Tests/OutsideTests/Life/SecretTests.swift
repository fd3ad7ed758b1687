import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Secrets are not disclosed")
    struct SecretTests {
        private let secret = "Bearer c2VjcmV0LXNlY3JldA"
        private let other = "Bearer b3RoZXItb3RoZXI"

        private func mode(_ mode: Int, of file: URL) throws {
            try FileManager.default.setAttributes(
                [.posixPermissions: mode], ofItemAtPath: file.path)
        }

        private func write(_ text: String, to file: URL, mode: Int) throws {
            try Data(text.utf8).write(to: file)
            try self.mode(mode, of: file)
        }

        private func settings(_ origin: ScriptedOrigin, _ fields: String) -> String {
            """
            sites:
              a.example:
                origin: \(origin.url(""))
                set-request-fields: \(fields)

            """
        }

        private func ask(_ node: NodeProcess, _ origin: ScriptedOrigin, _ path: String) throws
            -> String?
        {
            origin.on(path, .text("text"))
            _ = try node.get(path, host: "a.example")
            return origin.requests(path).first?.fields["Authorization"]
        }

        @Test("A secret field is sent to the site's origin, and shown nowhere")
        func redacted() throws {
            let origin = try ScriptedOrigin()
            let stage = try SettingsStage(settings(origin, "{Authorization: \(secret)}"))
            #expect(try ask(stage.node, origin, "/1") == secret)
            try stage.change(settings(origin, "{Authorization: \(other)}"))
            #expect(try ask(stage.node, origin, "/2") == other)
            let admin = try stage.node.connectAdmin()
            for path in ["/admin/v1/configuration", "/admin/v1/support", "/admin/v1/status"] {
                let shown = try admin.get(path)
                #expect(shown.status == 200)
                #expect(path.hasSuffix("status") || shown.text.contains("set-request-fields"))
                for word in [secret, other] {
                    #expect(!shown.text.contains(word.dropFirst(7)), "\(path)")
                }
            }
            let listed = try NodeProcess.run(["check-config", "--config", stage.path])
            #expect(String(decoding: listed.output, as: UTF8.self).contains("(redacted)"))
            let said = stage.node.output + String(decoding: listed.output, as: UTF8.self)
            #expect(!said.contains(secret.dropFirst(7)) && !said.contains(other.dropFirst(7)))
            #expect(
                stage.node.lineCount(containing: "settings reloaded", "with other secrets") == 1)
            let line = try stage.reload(settings(origin, "{Authorization: ' \(secret)'}"))
            #expect(line.contains("not reloaded") && line.contains("Authorization"))
            #expect(!line.contains(secret.dropFirst(7)))
        }

        @Test("A field value may be in a file, which is read at the start and at each reload")
        func ofFile() throws {
            let origin = try ScriptedOrigin()
            let folder = try TemporaryFolder()
            let file = folder.appending(path: "token")
            try write(secret + "\n", to: file, mode: 0o600)
            let text = settings(origin, "{Authorization: {file: \(file.path)}}")
            let stage = try SettingsStage(text)
            #expect(try ask(stage.node, origin, "/1") == secret)
            try write(other + "\n", to: file, mode: 0o600)
            try stage.change(text)
            #expect(try ask(stage.node, origin, "/2") == other)
            try FileManager.default.removeItem(at: file)
            let refused = try stage.reload(text)
            #expect(refused.contains("not reloaded") && refused.contains("the file does not exist"))
            #expect(refused.contains(file.path) && refused.contains("Authorization"))
            #expect(try ask(stage.node, origin, "/3") == other)
            let start = try NodeProcess.run(["serve", "--config", stage.path])
            #expect(start.status == 78 && start.errors.contains(file.path))
        }

        @Test("A secret file readable by others causes a warning, at the start and at a reload")
        func exposed() throws {
            let folder = try TemporaryFolder(isOpen: true)
            let words = ["admin-token-file", "purge-token-file", "decision-token-file"]
            let files = words.map { folder.appending(path: $0) }
            for file in files { try write("0123456789abcdef\n", to: file, mode: 0o644) }
            let text =
                opened
                + zip(words, files).map { "\($0): \($1.path)\n" }.joined()
            let stage = try SettingsStage(text)
            for (word, file) in zip(words, files) {
                #expect(
                    stage.node.lineCount(
                        containing: "level=warning", "setting \(word)", file.path, "can be read by")
                        == 1, "\(stage.node.lines)")
            }
            try mode(0o600, of: files[0])
            try stage.change(text)
            #expect(stage.node.lineCount(containing: "setting admin-token-file") == 1)
            #expect(stage.node.lineCount(containing: "setting purge-token-file") == 2)
            // Other users cannot reach the files.
            try mode(0o700, of: folder.url)
            try stage.change(text)
            #expect(stage.node.lineCount(containing: "can be read by") == 5)
        }
    }
}
