import Foundation
import Glibc
import Harness
import Testing

extension Outside {
    @Suite("nuthatch health reports in one line whether the node is ready")
    struct HealthTests {
        private func health(
            _ flags: [String], environment: [String: String] = [:]
        ) throws -> (status: Int?, line: String) {
            let result = try NodeProcess.run(["health"] + flags, environment: environment)
            let line = String(decoding: result.output, as: UTF8.self) + result.errors
            #expect(line.hasSuffix("\n") && line.count { $0 == "\n" } == 1, "\(line)")
            // Success on standard output, failure on standard error.
            #expect(result.errors.isEmpty == (result.status == 0), "\(line)")
            return (result.status, line)
        }

        @Test("A ready node, through the admin port or the data port")
        func ready() throws {
            let node = try NodeProcess()
            let admin = "127.0.0.1:\(node.adminPort)"
            let asked = try health(["--admin-listen", admin, "--listen", "127.0.0.1:1"])
            #expect(asked == (0, "http://\(admin)/readyz answered 200 {\"status\":\"ready\"}\n"))
            let data = "127.0.0.1:\(node.port)"
            let other = try health(
                ["--admin-listen", "off", "--listen", data, "--listen", "127.0.0.1:1"])
            #expect(other == (0, "http://\(data)/readyz answered 200 {\"status\":\"ready\"}\n"))
        }

        @Test("The environment and the file give the ports, even if they have other errors")
        func sources() throws {
            let node = try NodeProcess()
            let environment = [
                "NUTHATCH_LISTEN": "0.0.0.0:\(node.port)", "NUTHATCH_ADMIN_LISTEN": "off",
                "NUTHATCH_LOOPS": "many",
            ]
            #expect(try health([], environment: environment).status == 0)
            let stage = try SettingsStage("admin-listen: 127.0.0.1:1\n")
            try Data("listen: '[::ffff:127.0.0.1]:1'\nadmin-listen: off\nlops: 1\n".utf8)
                .write(to: URL(fileURLWithPath: stage.path))
            let (status, line) = try health(["--config", stage.path])
            #expect(status == 1 && line.contains("[::ffff:127.0.0.1]:1/readyz"), "\(line)")
        }

        @Test("A wildcard address is queried on loopback")
        func everywhere() throws {
            let port = try ReservedPort.forProcess()
            for (listen, asked) in [("0.0.0.0", "127.0.0.1"), ("[::]", "[::1]")] {
                let flags = ["--listen", "\(listen):\(port)", "--admin-listen", "off"]
                let node = try Program(
                    try NodeProcess.binary(), ["serve", "--allow-origin", "*"] + flags)
                let isUp = Deadline.seconds(20).waitUntil {
                    node.errors.contains("message=serving") || !node.isRunning
                }
                guard isUp && node.isRunning else {
                    #expect(listen == "[::]", "only IPv6 may be missing: \(node.errors)")
                    continue
                }
                let (status, line) = try health(flags)
                #expect(status == 0 && line.hasPrefix("http://\(asked):\(port)/"), "\(line)")
                node.terminate()
                #expect(node.wait(seconds: 20) == 0)
            }
        }

        @Test("A draining node")
        func draining() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.jpeg, byteCount: 30_000, seed: 1)
            let (running, gate) = try stage.begin {
                OriginResponse(image).stalling(at: 10_000, .gate($0))
            }
            stage.node.terminate()
            expectSoon(20) { stage.node.lineCount(containing: "message=draining") == 1 }
            let (status, line) = try health(
                ["--admin-listen", "127.0.0.1:\(stage.node.adminPort)"])
            #expect(status == 1 && line.contains("answered 503 {\"status\":\"draining\"}"))
            gate.open()
            #expect(running.readResponse(expecting: image).matches(image))
            #expect(stage.node.waitForExit() == 0)
        }

        @Test("A starting node has no port yet, which is reported")
        func starting() throws {
            let disk = try HungDisk()
            try disk.hang()
            let folder = try TemporaryFolder()
            let port = try ReservedPort.forProcess()
            let flags = ["--listen", "127.0.0.1:\(port)", "--admin-listen", "off"]
            let node = try Program(
                try NodeProcess.binary(), ["serve", "--cache-dir", folder.path] + flags,
                environment: disk.environment)
            expectSoon(20) { node.catches(SIGTERM) }
            let (status, line) = try health(flags)
            #expect(status == 1 && line.hasSuffix(":\(port)/readyz: Connection refused\n"))
            #expect(node.isRunning)
        }

        @Test("A port without number, an invalid time, and an unreadable file")
        func settings() throws {
            let portless = try health(["--admin-listen", "off", "--listen", "127.0.0.1:0"])
            #expect(portless.status == 1 && portless.line.contains("port 0"))
            let fallback = try health(
                ["--admin-listen", "127.0.0.1:0", "--listen", "127.0.0.1:1"])
            #expect(fallback.line.contains("127.0.0.1:1/readyz"))
            for text in ["soon", "0s", "3"] {
                let timeless = try health(["--timeout", text])
                #expect(timeless.status == 1 && timeless.line.contains("\"\(text)\""))
            }
            let fileless = try health(["--config", "/nowhere/n.yaml"])
            #expect(fileless.status == 1 && fileless.line.contains("the file does not exist"))
        }

        @Test("Other listeners: silent, slow, endless, or no HTTP")
        func others() throws {
            let origin = try ScriptedOrigin()
            let gate = Gate()
            defer { gate.open() }
            let image = TestImage.generated(.jpeg, byteCount: 3_000, seed: 2)
            let flags = [
                "--admin-listen", "off", "--listen", "127.0.0.1:\(origin.port)",
                "--timeout", "200ms",
            ]
            origin.on("/readyz", OriginResponse(image).delayingHead(.gate(gate)))
            #expect(try health(flags).line.hasSuffix("did not respond within 200ms\n"))
            origin.on("/readyz", OriginResponse(image).stalling(at: 100, .gate(gate)))
            #expect(try health(flags).line.hasSuffix("did not respond within 200ms\n"))
            origin.on("/readyz", closing("SSH-2.0-x\r\n"))
            #expect(try health(flags).line.hasSuffix("it is not a Nuthatch node\n"))
            origin.on("/readyz", closing("HTTP/1.1 404 N\r\n\r\na\u{1B}b"))
            let (status, line) = try health(flags)
            #expect(status == 1 && line.hasSuffix("answered 404 a\\u{1B}b\n"), "\(line)")
        }

        private func closing(_ text: String) -> OriginResponse {
            var response = OriginResponse.raw(Array(text.utf8))
            response.closesAfter = true
            return response
        }
    }
}
