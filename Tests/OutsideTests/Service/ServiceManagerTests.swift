import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A service manager is notified of the node's state")
    struct ServiceManagerTests {
        private let image = TestImage.generated(.jpeg, byteCount: 30_000, seed: 3)

        @Test("Ready, reloading, ready again, stopping", arguments: [false, true])
        func states(isAbstract: Bool) throws {
            let socket = try NotifySocket(isAbstract: isAbstract)
            let stage = try SettingsStage(
                opened, "--drain-timeout", "20s",
                environment: ["NOTIFY_SOCKET": socket.name, "WATCHDOG_USEC": "1000000"])
            let port = stage.node.port
            let ready = try #require(socket.next(with: "READY=1"))
            #expect(ready == ["READY=1", "STATUS=serving on 127.0.0.1:\(port)"])

            try stage.change(opened + "ranges-limit: 3\n")
            let before = try #require(socket.next(with: "RELOADING=1"))
            let time = before.last?.split(separator: "=")
            #expect(before.count == 2 && time?.first == "MONOTONIC_USEC")
            #expect((Int(time?.last ?? "") ?? 0) > 0)
            let after = try #require(socket.next(with: "READY=1"))
            #expect(after.last == "STATUS=serving; settings reloaded, 1 changed")

            try stage.reload("ranges-limit: x\n")
            _ = try #require(socket.next(with: "RELOADING=1"))
            let refused = try #require(socket.next(with: "READY=1")?.last)
            #expect(
                refused.hasPrefix("STATUS=serving; settings not reloaded: setting ranges-limit"))

            stage.node.terminate()
            let stopping = try #require(socket.next(with: "STOPPING=1"))
            #expect(stopping[1] == "STATUS=draining 0 connections")
            let microseconds = stopping[2].split(separator: "=").last.flatMap { Int($0) } ?? 0
            #expect((20_000_000...30_000_000).contains(microseconds), "\(stopping)")
            #expect(stage.node.waitForExit() == 0)
        }

        @Test("The watchdog is notified while all event loops make progress")
        func watchdog() throws {
            let socket = try NotifySocket()
            let disk = try HungDisk()
            let folder = try TemporaryFolder()
            let origin = try ScriptedOrigin()
            let target = ImageRequestTarget.forURL(
                origin.url(origin.serve(image, fields: [lasting])))
            let flags = [
                "--cache-dir", folder.path, "--disk-limit", "64MiB", "--drain-timeout", "1s",
            ]
            let first = try NodeProcess(flags)
            #expect(try first.get(target).matches(image))
            #expect(first.stop() == 0)

            let node = try NodeProcess(
                flags,
                environment: disk.environment.merging(
                    ["NOTIFY_SOCKET": socket.name, "WATCHDOG_USEC": "200000"]) { $1 })
            for _ in 0..<5 { #expect(socket.next(with: "WATCHDOG=1") != nil) }
            try disk.hang()
            // From now on a non-blocking read blocks one of the loops.
            let connection = try node.connect()
            try connection.socket.send(HTTPConnection.request(target))
            var beats = 0
            while socket.next(seconds: 0.45) != nil, beats < 100 { beats += 1 }
            #expect(beats < 100, "a loop hangs, and the beats go on")
            #expect(node.isRunning)
            // Such a loop does not delay the stop, either.
            #expect(node.stop(seconds: 30) == 1)
            #expect(node.lineCount(containing: "level=error", "event loop does not respond") == 1)
        }

        @Test("A watchdog for another process gets no notifications")
        func otherWatchdog() throws {
            let socket = try NotifySocket()
            let node = try NodeProcess(environment: [
                "NOTIFY_SOCKET": socket.name, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1",
            ])
            #expect(socket.next(with: "READY=1") != nil)
            node.terminate()
            #expect(socket.next()?.first == "STOPPING=1")
            #expect(node.waitForExit() == 0)
        }

        @Test("An unread, missing, or wrong kind of socket delays nothing")
        func unread() throws {
            let socket = try NotifySocket()
            for name in [socket.name, "/nowhere/at/all", "vsock:2:1234", "@", ""] {
                let stage = try SettingsStage(
                    opened,
                    environment: ["NOTIFY_SOCKET": name, "WATCHDOG_USEC": "20000"])
                try stage.change(opened + "ranges-limit: 3\n")
                #expect(stage.node.stop(seconds: 30) == 0, "\(name)")
            }
        }
    }
}
