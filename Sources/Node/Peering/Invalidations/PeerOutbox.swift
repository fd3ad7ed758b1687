import Cluster
import Ground
import Logging
import Synchronization

/// Messages about invalidations that were decided on and are not written to connections yet.
///
/// They are added under the lock under which they are decided, so in that order, and encoded and
/// written in the same order without it, by one thread at a time.
final class PeerOutbox: Sendable {
    private struct Message {
        let content: InvalidationMessage
        let connections: [PeerConnection]
    }

    private let logger: Logger
    private let messages = Mutex<[Message]>([])
    private let isWriting = Mutex<Void>(())

    init(logger: Logger) {
        self.logger = logger
    }

    func add(_ content: InvalidationMessage, on connections: [PeerConnection]) {
        guard !connections.isEmpty else { return }
        messages.withLock { $0.append(Message(content: content, connections: connections)) }
    }

    /// Has all that was added written, by the caller or by whoever writes already.
    func write() {
        while messages.withLock({ !$0.isEmpty }) {
            let isDone: Void? = isWriting.withLockIfAvailable { _ in
                for message in drain() { write(message) }
            }
            // Whoever writes looks again when it has done.
            if isDone == nil { return }
        }
    }

    /// The same, and returns only when it has been.
    func finish() {
        isWriting.withLock { _ in
            for message in drain() { write(message) }
        }
        write()
    }

    private func drain() -> [Message] { messages.withLock { $0.takeAll() } }

    private func write(_ message: Message) {
        var pushed: UInt64 = 0
        if case .push(let records) = message.content { pushed = records.last?.id.number ?? 0 }
        do throws(SendError) {
            let said = try EncodedInvalidationMessage(message.content)
            for connection in message.connections { connection.send(said, pushed: pushed) }
        } catch {
            logger.error(
                "what is known of invalidations cannot be told", metadata: ["why": "\(error)"])
        }
    }
}
