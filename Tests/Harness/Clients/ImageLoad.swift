import Foundation

/// A load of connections that request random images in turn and compare every response.
///
/// The load runs until it is stopped or the server has ended.
package final class ImageLoad: Sendable {
    /// An image and its request target.
    package typealias RequestedImage = (target: String, image: TestImage)

    /// The responses by result.
    package struct Counts: Sendable {
        /// Number of responses that looked complete.
        package var complete = 0
        /// Number of responses that were cut off.
        package var truncated = 0
        /// Descriptions of the responses that looked complete but were not the image.
        package var wrong: [String] = []
    }

    private struct State {
        var tally = Counts()
        var running = 0
        var isOver = false
    }

    private let state = Monitor(State())

    /// Starts the load; all random choices follow from `seed`.
    package init(
        port: Int, connections: Int, seed: UInt64, _ wanted: [RequestedImage]
    ) {
        for number in 0..<connections {
            state.update { $0.running += 1 }
            Thread.detachNewThread { [state] in
                Self.ask(port, wanted, seed: seed ^ UInt64(number) << 32, state)
                state.update { $0.running -= 1 }
            }
        }
    }

    deinit {
        state.update { $0.isOver = true }
    }

    /// Waits until `count` complete responses have arrived, and returns false on timeout.
    package func waitForAnswers(_ count: Int, seconds: Double = 30) -> Bool {
        state.wait(until: .seconds(seconds)) { $0.tally.complete >= count }
    }

    /// Stops the load and returns the counts.
    package func stop(seconds: Double = 60) -> Counts {
        state.update { $0.isOver = true }
        _ = state.wait(until: .seconds(seconds)) { $0.running == 0 }
        return state.read(\.tally)
    }

    private static func ask(
        _ port: Int, _ wanted: [RequestedImage], seed: UInt64, _ state: Monitor<State>
    ) {
        var seed = seed
        while let connection = try? HTTPConnection(port: port) {
            while true {
                guard !state.read(\.isOver) else { return }
                let (target, image) = wanted[Int(Noise.mix(&seed) % UInt64(wanted.count))]
                guard let response = try? connection.get(target, expecting: image) else { break }
                state.update { state in
                    guard response.isWhole else { return state.tally.truncated += 1 }
                    state.tally.complete += 1
                    if !response.matches(image) {
                        state.tally.wrong.append("\(image): \(response)")
                    }
                }
                guard response.isWhole else { break }
            }
        }
    }
}
