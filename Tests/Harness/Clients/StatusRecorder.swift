import Foundation

/// Sends the same requests on one connection, in one piece, again and again, and notes which
/// statuses came together.
package final class StatusRecorder: Sendable {
    private struct State {
        var seen: Set<[Int]> = []
        var rounds = 0
        var isOver = false
        var hasEnded = false
    }

    private let state = Monitor(State())

    /// Begins to ask.
    ///
    /// - Parameters:
    ///   - port: The server's port on 127.0.0.1.
    ///   - requests: The bytes of each request, whose answers must leave the connection open.
    /// - Throws: What the system says against connecting.
    package init(port: Int, _ requests: [[UInt8]]) throws {
        let connection = ThreadConfined(try HTTPConnection(port: port))
        Thread.detachNewThread { [state] in
            while !state.read(\.isOver) {
                let statuses = Self.ask(connection.value, requests)
                state.update { state in
                    state.seen.insert(statuses)
                    state.rounds += 1
                    if statuses.contains(0) { state.isOver = true }
                }
            }
            state.update { $0.hasEnded = true }
        }
    }

    deinit {
        state.update { $0.isOver = true }
    }

    /// Asks no more; which statuses came together, 0 for no answer, and how often was asked.
    package func stop(seconds: Double = 60) -> (seen: Set<[Int]>, rounds: Int) {
        state.update { $0.isOver = true }
        _ = state.wait(until: .seconds(seconds), for: \.hasEnded)
        return state.read { ($0.seen, $0.rounds) }
    }

    private static func ask(_ connection: HTTPConnection, _ requests: [[UInt8]]) -> [Int] {
        guard (try? connection.socket.send(Array(requests.joined()))) != nil else { return [0] }
        return requests.map { _ in connection.readResponse().status }
    }
}

/// A connection that is handed to one thread and used there alone.
private struct ThreadConfined: @unchecked Sendable {
    let value: HTTPConnection

    init(_ value: HTTPConnection) {
        self.value = value
    }
}
