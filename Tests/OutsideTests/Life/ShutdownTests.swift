import Foundation
import Glibc
import Harness
import Testing

extension Outside {
    @Suite("SIGTERM drains the node")
    struct ShutdownTests {
        private let image = TestImage.generated(.jpeg, byteCount: 300_000, seed: 180)

        /// Returns a response whose second half waits for the gate.
        private func half(_ gate: Gate) -> OriginResponse {
            OriginResponse(image).stalling(at: 150_000, .gate(gate))
        }

        @Test("A response in progress is completed, new connections are refused, the status is 0")
        func drains() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let (running, gate) = try stage.begin { half($0) }
            stage.node.terminate()
            expectSoon(20) { (try? stage.node.get("/healthz", seconds: 1))?.isWhole != true }
            #expect(stage.node.isRunning)
            gate.open()
            let response = running.readResponse(expecting: image)
            #expect(response.matches(image), "\(response)")
            #expect(running.waitForEnd() == .truncated)
            #expect(stage.node.waitForExit() == 0)
        }

        @Test("While the node drains, the admin port responds and reports it")
        func readiness() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let admin = try HTTPConnection(port: stage.node.adminPort)
            #expect(try admin.get("/readyz").status == 200)
            let (running, gate) = try stage.begin { half($0) }
            stage.node.terminate()
            expectSoon(20) { (try? stage.node.connect()) == nil }
            #expect(try admin.get("/readyz").status == 503)
            let another = try HTTPConnection(port: stage.node.adminPort)
            #expect(try another.get("/healthz").status == 200)
            #expect(stage.node.metric("nuthatch_connections_open") == 1)
            gate.open()
            #expect(running.readResponse(expecting: image).matches(image))
            #expect(stage.node.waitForExit(seconds: 20) == 0)
        }

        @Test(
            "An unread log pipe delays neither requests nor the stop", arguments: [1, 2])
        func stuckLog(descriptor: Int) throws {
            let port = try ReservedPort.forProcess()
            let fifo = FileManager.default.temporaryDirectory
                .appendingPathComponent("nuthatch-\(UUID().uuidString)").path
            defer { try? FileManager.default.removeItem(atPath: fifo) }
            // The node itself holds the pipe's reading end and does not read.
            let script =
                "mkfifo \(fifo) && exec \"$0\" serve --listen 127.0.0.1:\(port) "
                + "--admin-listen off --access-log json 3<>\(fifo) \(descriptor)>\(fifo)"
            let node = try Program("/bin/sh", ["-c", script, try NodeProcess.binary()])
            expectSoon(20) { (try? HTTPConnection(port: port).get("/readyz").status) == 200 }
            let client = try HTTPConnection(port: port)
            let long = String(repeating: "a", count: 900)
            for _ in 0..<500 {
                // Refused before any connection is opened, with a line in either log.
                let response = try client.get("/v1/image?url=http://10.0.0.1/\(long)", seconds: 10)
                #expect(response.status == 403)
                guard response.isWhole else { break }
            }
            node.terminate()
            #expect(node.wait(seconds: 20) == 0)
        }

        @Test("Idle connections do not delay the stop")
        func idle() throws {
            let node = try NodeProcess()
            let (unused, used) = (try node.connect(), try node.connect())
            #expect(try used.get("/healthz").status == 200)
            #expect(node.stop(seconds: 20) == 0)
            #expect(unused.waitForEnd() != .timedOut)
            #expect(used.waitForEnd() != .timedOut)
        }

        @Test("Responses that do not end in time are cut off and do not look complete")
        func timeOut() throws {
            let stage = try Stage("--drain-timeout", "200ms")
            defer { withExtendedLifetime(stage) {} }
            let (running, gate) = try stage.begin { half($0) }
            defer { gate.open() }
            #expect(stage.node.stop(seconds: 30) == 1)
            let response = running.readResponse(expecting: image)
            #expect(!response.isWhole && response.ending != .timedOut, "\(response)")
        }

        @Test("A second signal cuts off what the first one let continue")
        func twice() throws {
            let stage = try Stage("--drain-timeout", "1h")
            defer { withExtendedLifetime(stage) {} }
            let (running, gate) = try stage.begin { half($0) }
            defer { gate.open() }
            stage.node.terminate()
            expectSoon(20) { stage.node.lineCount(containing: "message=draining") == 1 }
            stage.node.interrupt()
            #expect(stage.node.waitForExit(seconds: 30) == 1)
            let response = running.readResponse(expecting: image)
            #expect(!response.isWhole && response.ending != .timedOut, "\(response)")
            #expect(
                stage.node.lineCount(
                    containing: "connections aborted", "connections=1", "second stop signal") == 1)
        }

        @Test("A hanging disk delays the stop by no more than drain-timeout")
        func hungDisk() throws {
            let disk = try HungDisk()
            let folder = try TemporaryFolder()
            let origin = try ScriptedOrigin()
            defer { withExtendedLifetime(origin) {} }
            let node = try NodeProcess(
                ["--cache-dir", folder.path, "--disk-limit", "64MiB", "--drain-timeout", "200ms"],
                environment: disk.environment)
            try disk.hang()
            let target = ImageRequestTarget.forURL(
                origin.url(origin.serve(image, fields: [lasting])))
            #expect(try node.get(target).matches(image))
            expectSoon(20) { node.metric("nuthatch_disk_queued_bytes") != 0 }
            #expect(node.stop(seconds: 30) == 1)
            #expect(
                node.lineCount(
                    containing: "level=error", "the disk does not respond", "queued_bytes=") == 1)
        }

        @Test("A disk that hangs at the start does not prevent a stop")
        func hungStart() throws {
            let disk = try HungDisk()
            try disk.hang()
            let folder = try TemporaryFolder()
            let port = try ReservedPort.forProcess()
            let node = try Program(
                try NodeProcess.binary(),
                [
                    "serve", "--listen", "127.0.0.1:\(port)", "--admin-listen", "off",
                    "--cache-dir", folder.path, "--drain-timeout", "1h",
                ], environment: disk.environment)
            expectSoon(20) { node.catches(SIGTERM) }
            node.hangUp()
            node.terminate()
            expectSoon(20) { node.errors.contains("message=draining") }
            node.terminate()
            #expect(node.wait(seconds: 30) == 1, "\(node.errors)")
        }

        @Test("Requests already sent on a connection get responses, the last one with close")
        func pipelined() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let (connection, gate) = try stage.begin {
                OriginResponse(image).delayingHead(.gate($0))
            }
            stage.node.terminate()
            gate.open()
            let response = connection.readResponse(expecting: image)
            #expect(response.matches(image), "\(response)")
            #expect(connection.waitForEnd() == .truncated)
            #expect(stage.node.waitForExit() == 0)
        }
    }
}
