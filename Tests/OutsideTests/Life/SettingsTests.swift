import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Invalid settings fail the start with a reason")
    struct SettingsTests {
        @Test("A node without any privilege serves")
        func unprivileged() throws {
            let origin = try ScriptedOrigin()
            let node = try NodeProcess(isPrivileged: false)
            let image = TestImage.generated(.jpeg, byteCount: 30_000, seed: 160)
            let path = origin.serve(image, fields: [lasting])
            for isHit in [false, true] {
                let response = try node.get(ImageRequestTarget.forURL(origin.url(path)))
                #expect(response.matches(image) && response.isHit == isHit, "\(response)")
            }
            withExtendedLifetime(origin) {}
        }

        /// Invalid values of settings, with the permitted values that the message must name.
        static let bad: [(name: String, value: String, allowed: String)] = [
            ("memory-limit", "banana", "16MiB"),
            ("memory-limit", "1KiB", "16MiB"),
            ("memory-limit", "-1", "16MiB"),
            ("memory-limit", "99999999999999999999", "16MiB"),
            ("memory-entries", "many", "0"),
            ("object-limit", "1", "1KiB"),
            ("variants-limit", "0", "1"),
            ("default-ttl", "soon", "0s"),
            ("default-ttl", "-1s", "0s"),
            ("loops", "-1", "64"),
            ("loops", "1.5", "64"),
            ("listen", "nonsense", "PORT"),
            ("listen", "127.0.0.1:99999", "PORT"),
            ("listen", "127.0.0.1", "PORT"),
            ("admin-listen", "0.0.0.0:1", "admin-token-file"),
            ("admin-listen", "here", "PORT"),
            ("access-log", "maybe", "combined"),
            ("log-level", "loud", "warning"),
            ("allow-origin", "http://a/b", "HOST"),
            ("allow-private-origin", "10.0.0.1/8", "10.0.0.0/8"),
            ("allow-private-origin", "10.0.0.0/40", "ADDRESS"),
            ("allow-private-origin", "home", "ADDRESS"),
            ("drain-timeout", "30", "0s"),
            ("idle-timeout", "0s", "10ms"),
            ("head-timeout", "1y", "10ms"),
            ("connections-limit", "x", "0"),
            ("pipeline-limit", "0", "1KiB"),
            ("fills-limit", "0", "1"),
        ]

        private func expectRefused(
            _ result: ProgramResult, _ name: String, _ allowed: String? = nil,
            at location: SourceLocation = #_sourceLocation
        ) {
            #expect(
                result.status != nil && result.status != 0, "\(name): \(result)",
                sourceLocation: location)
            #expect(
                result.errors.contains(name), "\(name): \(result.errors)", sourceLocation: location)
            guard let allowed else { return }
            #expect(
                result.errors.contains(allowed), "\(name), \(allowed): \(result.errors)",
                sourceLocation: location)
        }

        /// Runs `serve` with otherwise valid settings; it does not keep running if it starts.
        private func serve(
            _ flags: [String], environment: [String: String] = [:]
        ) throws -> ProgramResult {
            try NodeProcess.run(
                ["serve", "--admin-listen", "off"] + flags, environment: environment, seconds: 5)
        }

        @Test("Invalid values as flags")
        func flags() throws {
            for row in Self.bad {
                // With "=", because a value may begin with a dash.
                let result = try serve(["--\(row.name)=\(row.value)"])
                expectRefused(result, row.name, row.allowed)
            }
        }

        @Test("Invalid values in the environment")
        func environment() throws {
            for row in Self.bad where row.name != "admin-listen" {
                let variable =
                    "NUTHATCH_" + row.name.uppercased().replacingOccurrences(of: "-", with: "_")
                let result = try serve([], environment: [variable: row.value])
                expectRefused(result, variable, row.allowed)
            }
        }

        @Test("Invalid values in the file")
        func file() throws {
            let folder = try TemporaryFolder()
            for row in Self.bad where row.name != "admin-listen" {
                let file = try folder.write(
                    "\(row.name): \"\(row.value)\"\n", to: "nuthatch.yaml")
                let result = try serve(["--config", file.path])
                expectRefused(result, row.name, row.allowed)
                #expect(result.errors.contains("nuthatch.yaml"), "\(result.errors)")
            }
        }

        @Test("A missing file, invalid YAML, or an unknown key")
        func badFiles() throws {
            let folder = try TemporaryFolder()
            let path = folder.appending(path: "nuthatch.yaml").path
            expectRefused(try serve(["--config", path]), "nuthatch.yaml")
            for (text, word) in [
                ("memory-limt: 64MiB\n", "memory-limt"), ("[", "nuthatch.yaml"),
                ("memory-limit: {a: b}\n", "memory-limit"), ("- a\n", "nuthatch.yaml"),
            ] {
                try folder.write(text, to: "nuthatch.yaml")
                expectRefused(try serve(["--config", path]), word)
            }
        }

        @Test("An unknown flag and a missing value")
        func unknownFlags() throws {
            expectRefused(try serve(["--no-such-flag", "1"]), "no-such-flag")
            expectRefused(try serve(["--memory-limit"]), "memory-limit")
            expectRefused(try serve(["stray"]), "stray")
        }

        @Test("Flags override the environment, and the environment overrides the file")
        func precedence() throws {
            let folder = try TemporaryFolder()
            let path = try folder.write("access-log: combined\n", to: "nuthatch.yaml").path
            let log = { (flags: [String], environment: [String: String]) in
                let node = try NodeProcess(["--config", path] + flags, environment: environment)
                _ = try node.get("/missing")
                #expect(node.stop() == 0)
                return node.output.contains("/missing")
            }
            #expect(try log([], [:]))
            #expect(try !log([], ["NUTHATCH_ACCESS_LOG": "off"]))
            #expect(try log(["--access-log", "json"], ["NUTHATCH_ACCESS_LOG": "off"]))
        }

        @Test("An unknown environment variable only causes a warning")
        func unknownVariable() throws {
            let node = try NodeProcess(environment: ["NUTHATCH_PORT": "tcp://10.0.0.1:80"])
            expectSoon(20) { node.lineCount(containing: "NUTHATCH_PORT") == 1 }
        }

        @Test("Beyond loopback a node requires allow-origin or a site")
        func openWorld() throws {
            let port = try ReservedPort.forProcess()
            expectRefused(try serve(["--listen", "0.0.0.0:\(port)"]), "allow-origin")
        }

        @Test("A port in use is named")
        func takenPort() throws {
            let node = try NodeProcess()
            let result = try serve(["--listen", "127.0.0.1:\(node.port)"])
            expectRefused(result, "\(node.port)")
        }

        @Test("Help lists every setting with its default and range")
        func help() throws {
            let result = try NodeProcess.run(["serve", "--help"])
            #expect(result.status == 0)
            let text = String(decoding: result.output, as: UTF8.self)
            for name in Set(Self.bad.map(\.name)) { #expect(text.contains("--\(name)"), "\(name)") }
            #expect(text.contains("512MiB") && text.contains("16MiB"))
        }
    }
}
