import Foundation
import Harness

/// An origin with changing images, and clients that purge and read at random nodes.
final class BlackBoxClients: Sendable {
    struct State: Sendable {
        var history = PurgeHistory()
        /// The origin's current version of each key.
        var versions: [Int]
        var violations: [String] = []
        var refused = 0
        var purges = 0
        var isOver = false
        var running = 0
    }

    let state: LockedBox<State>
    /// The nodes that run now.
    let nodes: LockedBox<[NodeProcess]>
    private let origin: ScriptedOrigin

    private static let keys = 8
    private static let readers = 4

    init(_ origin: ScriptedOrigin, _ nodes: [NodeProcess]) {
        self.origin = origin
        self.nodes = LockedBox(nodes)
        let state = LockedBox(State(versions: Array(repeating: 1, count: Self.keys)))
        self.state = state
        for key in 0..<Self.keys {
            origin.on("/\(key)") { request in
                let version = state.value.versions[key]
                let fields = ["Cache-Control: max-age=3600", "ETag: \"\(key)-\(version)\""]
                if request.fields["If-None-Match"] == "\"\(key)-\(version)\"" {
                    return .notModified(fields)
                }
                return OriginResponse(Self.image(key, version), fields: fields)
            }
        }
    }

    private static func image(_ key: Int, _ version: Int) -> TestImage {
        let text = "key \(key) version \(version) " + String(repeating: ".", count: 4_000)
        return TestImage(name: "\(key)", contentType: "image/png", bytes: Array(text.utf8))
    }

    /// Returns the seconds of a clock that all parts share.
    static func now() -> Double { ProcessInfo.processInfo.systemUptime }

    /// Starts the clients.
    func start(seed: UInt64) {
        for number in 0..<Self.readers + 2 {
            state.change { $0.running += 1 }
            Thread.detachNewThread { [self] in
                var dice = SeededDice(seed &* 31 &+ UInt64(number))
                while !state.value.isOver {
                    if number < Self.readers { readOnce(&dice) } else { purgeOnce(&dice) }
                }
                state.change { $0.running -= 1 }
            }
        }
    }

    /// Stops the clients and returns what they saw.
    func stop() -> State {
        state.change { $0.isOver = true }
        _ = Deadline.seconds(60).waitUntil { state.value.running == 0 }
        return state.value
    }

    private func readOnce(_ dice: inout SeededDice) {
        let (key, node) = (dice.below(Self.keys), dice.below(nodes.value.count))
        let askedAt = Self.now()
        let target = ImageRequestTarget.forURL(origin.url("/\(key)"))
        let response = try? nodes.value[node].get(target, seconds: 15)
        // A response that a killed node has begun is truncated.
        guard let response, response.status == 200, response.isWhole, let body = response.body
        else {
            return state.change { $0.refused += 1 }
        }
        let words = String(decoding: body.prefix(60), as: UTF8.self).split(separator: " ")
        state.change { state in
            guard words.count >= 4, words[1] == "\(key)", let version = Int(words[3]),
                version <= state.versions[key], body == Self.image(key, version).bytes
            else { return state.violations.append("a strange body of key \(key): \(words)") }
            let read = PurgeHistory.Read(
                key: key, version: version, node: node, askedAt: askedAt)
            if let broken = state.history.add(read) { state.violations.append(broken) }
        }
    }

    private func purgeOnce(_ dice: inout SeededDice) {
        let (key, node) = (dice.below(Self.keys), dice.below(nodes.value.count))
        let mode = dice.below(4) == 0 ? "soft" : "hard"
        let version = state.change { state in
            state.versions[key] += 1
            return state.versions[key]
        }
        let url = origin.url("/\(key)")
        let body = "{\"mode\":\"\(mode)\",\"targets\":[{\"url\":\"\(url)\"}]}"
        let response = try? nodes.value[node].connectAdmin().post(
            body, to: "/admin/v1/purges?wait=all&timeout=1s")
        let answeredAt = Self.now()
        guard let response, response.status == 200 || response.status == 202,
            let fields = response.document
        else { return }
        let isConfirmed = fields["all_confirmed"] as? Bool == true
        let bound = (fields["bounded_in_ms"] as? Double).map { answeredAt + $0 / 1_000 }
        state.change { state in
            state.purges += 1
            state.history.add(
                .init(
                    key: key, version: version, confirmedAt: isConfirmed ? answeredAt : nil,
                    boundedAt: bound))
        }
    }
}
