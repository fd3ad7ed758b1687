import Cluster
import Ground
import Logging
import Synchronization

/// The queue of messages about invalidations that are not written to connections yet.
///
/// Messages are added under the lock under which they are decided, so in that order. They are
/// encoded and written in the same order outside of that lock, by one thread at a time.
final class PeerOutbox: Sendable {
    /// A message and the connections that it is for.
    private struct Message {
        let content: InvalidationMessage
        let connections: [PeerConnection]
    }

    private let logger: Logger
    private let messages = Mutex<[Message]>([])
    private let isWriting = Mutex<Void>(())

    /// Creates an empty queue.
    init(logger: Logger) {
        self.logger = logger
    }

    /// Appends a message for these connections; does nothing if there are none.
    func add(_ content: InvalidationMessage, on connections: [PeerConnection]) {
        guard !connections.isEmpty else { return }
        messages.withLock { $0.append(Message(content: content, connections: connections)) }
    }

    /// Passes all added messages to their connections, or leaves that to a thread that is already
    /// doing so.
    func write() {
        while messages.withLock({ !$0.isEmpty }) {
            let isDone: Void? = isWriting.withLockIfAvailable { _ in
                for message in drain() { write(message) }
            }
            // The writing thread checks the queue again afterwards.
            if isDone == nil { return }
        }
    }

    /// Passes all added messages to their connections, and returns only when that is done.
    func finish() {
        isWriting.withLock { _ in
            for message in drain() { write(message) }
        }
        write()
    }

    /// Returns all messages and empties the queue.
    private func drain() -> [Message] { messages.withLock { $0.takeAll() } }

    /// Encodes a message and sends it on its connections; logs an error if it cannot be encoded.
    private func write(_ message: Message) {
        var pushed: UInt64 = 0
        if case .push(let records) = message.content { pushed = records.last?.id.number ?? 0 }
        do throws(SendError) {
            let said = try EncodedInvalidationMessage(message.content)
            for connection in message.connections { connection.send(said, pushed: pushed) }
        } catch {
            logger.error(
                "cannot send invalidations to a peer", metadata: ["why": "\(error)"])
        }
    }
}
