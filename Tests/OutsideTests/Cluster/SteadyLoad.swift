import Foundation
import Harness

/// A load of clients at several nodes, each with its own connection, that request
/// ``NumberedImages`` in turn.
///
/// Each client runs until its plan ends, it is stopped, or its connection breaks.
final class SteadyLoad: Sendable {
    /// Returns a client's next image and the kind to count it as; `nil` at the end.
    typealias Plan = @Sendable (_ client: Int) -> (number: Int, kind: String)?

    /// The results of the requests to one node.
    struct Tally: Sendable {
        /// Number of responses with the expected image, by kind.
        var brought: [String: Int] = [:]
        /// Descriptions of the requests without such a response.
        var failures: [String] = []

        /// Number of all successful responses.
        var count: Int { brought.values.reduce(0, +) }
    }

    private let tallies: LockedBox<[Tally]>
    private let running: LockedBox<Int>
    private let isOver = LockedBox(false)

    /// Starts to send requests to `nodes`, each over that many connections, with a pause in seconds
    /// after each response.
    init(
        _ nodes: [NodeProcess], connections: Int, pause: Double, origin: ScriptedOrigin,
        _ plan: @escaping Plan
    ) {
        tallies = LockedBox(Array(repeating: Tally(), count: nodes.count))
        running = LockedBox(nodes.count * connections)
        for (index, node) in nodes.enumerated() {
            for number in 0..<connections {
                let client = index * connections + number
                Thread.detachNewThread { [tallies, running, isOver] in
                    if let connection = try? node.connect() {
                        Self.ask(
                            connection, origin, pause, isOver, { plan(client) },
                            { change in tallies.change { change(&$0[index]) } })
                    }
                    running.change { $0 -= 1 }
                }
            }
        }
    }

    deinit { isOver.value = true }

    private static func ask(
        _ connection: HTTPConnection, _ origin: ScriptedOrigin, _ pause: Double,
        _ isOver: LockedBox<Bool>, _ next: () -> (number: Int, kind: String)?,
        _ count: (_ change: (inout Tally) -> Void) -> Void
    ) {
        while !isOver.value {
            guard let (number, kind) = next() else { return }
            let image = NumberedImages.image(number)
            let target = ImageRequestTarget.forURL(origin.url(NumberedImages.path(number)))
            let start = ContinuousClock.now
            let response = try? connection.get(target, expecting: image, seconds: 60)
            let seconds = (ContinuousClock.now - start) / .seconds(1)
            let isWell = response?.matches(image) == true
            count { tally in
                if isWell {
                    tally.brought[kind, default: 0] += 1
                } else {
                    let said = response.map { "\($0)" } ?? "not sent"
                    tally.failures.append("\(kind) \(number): \(said), \(seconds) s")
                }
            }
            guard response?.isWhole == true else { return }
            if pause > 0 { _ = Deadline.seconds(pause).waitUntil { isOver.value } }
        }
    }

    /// The kinds of requests in ``mixed(stored:_:)``.
    static let kinds = ["stored", "new"]

    /// Returns a plan that alternates between the first `stored` images and new ones.
    ///
    /// Each new image is requested three times in short succession; `count` is the number of
    /// requests so far.
    static func mixed(stored: Int, _ count: LockedBox<Int>) -> Plan {
        { _ in
            count.change { count in
                count += 1
                return count % 2 == 0
                    ? (NumberedImages.newStart + count / 6, kinds[1])
                    : (count * 7 % stored, kinds[0])
            }
        }
    }

    /// The results so far, node by node.
    var now: [Tally] { tallies.value }

    /// Waits until each of `nodes` has served `count` images of each of `kinds` more than in
    /// `before`.
    func waitForAnswers(
        _ count: Int, of kinds: [String], at nodes: [Int], since before: [Tally],
        seconds: Double = 60
    ) -> Bool {
        Deadline.seconds(seconds).waitUntil {
            let now = now
            return nodes.allSatisfy { node in
                kinds.allSatisfy { kind in
                    let (then, now) = (before[node].brought[kind], now[node].brought[kind])
                    return (now ?? 0) - (then ?? 0) >= count
                }
            }
        }
    }

    /// Stops the load and returns the results once every client is done.
    func stop(seconds: Double = 90) -> [Tally] {
        isOver.value = true
        _ = waitForEnd(seconds: seconds)
        return now
    }

    /// Waits until every client has ended its plan or its connection is broken.
    func waitForEnd(seconds: Double = 120) -> Bool {
        Deadline.seconds(seconds).waitUntil { running.value == 0 }
    }
}
