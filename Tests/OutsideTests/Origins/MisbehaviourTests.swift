import Harness
import NIOPosix
import Testing

extension Outside {
    @Suite("Origins that misbehave")
    struct MisbehaviourTests {
        /// Limits that are reached soon.
        private static let flags = [
            "--origin-connect-timeout", "500ms", "--origin-first-byte-timeout", "500ms",
            "--origin-idle-timeout", "500ms", "--origin-total-timeout", "3s",
            "--origin-min-rate", "0",
            "--origin-head-limit", "8KiB", "--origin-fields-limit", "32",
            "--origin-body-limit", "1MiB", "--origin-redirects", "3",
            "--origin-circuit-failures", "0", "--origin-keepalive", "3s",
        ]

        /// The resources of a node that a fetch could leak.
        private struct Use: Equatable {
            var fetches: Double?
            var waiters: Double?
            var memory: Double?
            var entries: Double?
            var busy: Double?
            var waiting: Double?

            init(of node: NodeProcess) {
                fetches = node.metric("nuthatch_fills_in_flight")
                waiters = node.metric("nuthatch_waiters")
                memory = node.metric("nuthatch_memory_used_bytes")
                entries = node.metric("nuthatch_memory_entries")
                let open = node.metric("nuthatch_origin_connections") ?? -1
                busy = open - (node.metric("nuthatch_origin_connections_idle") ?? -1)
                waiting = node.metric("nuthatch_origin_waiting")
            }
        }

        @Test("Each kind gets its response and log line, and leaks no resource")
        func misbehaviours() async throws {
            let node = try NodeProcess(Self.flags)
            let stage = Stage(origin: try ScriptedOrigin(), node: node)
            // The first connections and lookups open what then stays open.
            _ = try node.get(ImageRequestTarget.forURL("http://127.0.0.99:1/"))
            let before = try stage.settledDescriptors()
            #expect(Misbehaviour.all.count >= 60)
            for misbehaviour in Misbehaviour.all { try await play(misbehaviour, against: node) }
            // Idle connections close by themselves.
            expectSoon(20) { node.metric("nuthatch_origin_connections") == 0 }
            #expect(try stage.settledDescriptors() == before)
            #expect(node.isRunning)
        }

        private func play(_ misbehaviour: Misbehaviour, against node: NodeProcess) async throws {
            let origin = try await ByteOrigin.listening(
                on: MultiThreadedEventLoopGroup.singleton, scripts: misbehaviour.scripts)
            // A port is soon reused, and the node may still hold entries for it.
            let name = misbehaviour.name.filter { $0.isASCII && $0.isLetter }
            let target = ImageRequestTarget.forURL("http://127.0.0.1:\(origin.port)/\(name)")
            let isReused = Misbehaviour.reuse.contains { $0.name == misbehaviour.name }
            let busy = Use(of: node).busy
            if isReused { _ = try node.get(target) }
            var before = Use(of: node)
            // The client has its response a moment before the connection is idle again.
            before.busy = busy
            let linesBefore = lines(of: node).count
            let response = try node.get(target)
            check(response, misbehaviour)
            var isStored = false
            if case .image(let stored) = misbehaviour.seen { isStored = stored }
            expectSoon(10, "\(misbehaviour.name): \(before) became \(Use(of: node))") {
                var now = Use(of: node)
                if isStored { (now.memory, now.entries) = (before.memory, before.entries) }
                return now == before
            }
            if isStored { #expect(try node.get(target).isHit, "\(misbehaviour.name)") }
            var said = lines(of: node).dropFirst(linesBefore)
            // A line may be written a moment after the response.
            if misbehaviour.logged != nil {
                _ = Deadline.seconds(10).waitUntil {
                    said = lines(of: node).dropFirst(linesBefore)
                    return !said.isEmpty
                }
            }
            #expect(
                said.count == (misbehaviour.logged == nil ? 0 : 1)
                    && said.allSatisfy { $0.contains(misbehaviour.logged ?? "") },
                "\(misbehaviour.name): \(said)")
            try await origin.stop()
        }

        private func check(_ response: Response, _ misbehaviour: Misbehaviour) {
            switch misbehaviour.seen {
            case .problem(let status, let type):
                expectProblem(response, status, misbehaviour.name)
                #expect(response.text.contains("\(type)\""), "\(misbehaviour.name): \(response)")
            case .fetchFailed: expectProblem(response, 502, misbehaviour.name)
            case .broken:
                #expect(
                    !response.isWhole || response.status >= 400,
                    "\(misbehaviour.name): \(response)")
                #expect(response.ending != .timedOut, "\(misbehaviour.name): \(response)")
            case .image:
                #expect(
                    response.status == 200 && response.isWhole,
                    "\(misbehaviour.name): \(response)")
            }
        }

        /// Returns the node's log lines about origins.
        private func lines(of node: NodeProcess) -> [Substring] {
            node.output.split(separator: "\n").filter { $0.contains("message=\"origin ") }
        }
    }
}
