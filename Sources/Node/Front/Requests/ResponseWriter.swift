import Ground
import HTTPRules
import NIOCore
import Store

/// What carries the answers of a door to its client: a connection of HTTP/1.1, or one stream of a
/// connection of HTTP/2.
///
/// An answer is one call of ``send(head:)``, then any number of ``send(body:)``, or one of
/// ``send(head:body:)``; then ``answerEnded()``. Nothing of it is sure to go out before
/// ``flush()``.
protocol ResponseWriter: AnyObject {
    /// Bytes of answers that are not on their way: the socket has not taken them, or on a stream
    /// no frame.
    var queuedBytes: Int { get }

    /// Takes the head of the final answer, as HTTP/1.1 writes it.
    func send(head: ByteBuffer)
    /// Takes the head of the final answer and the whole body, by reference; keeps the entry until
    /// the client's side has taken it.
    func send(head: ByteBuffer, body entry: MemoryEntry)
    /// Takes an interim answer (RFC 9110 §15.2), as HTTP/1.1 writes it.
    func send(interim: ByteBuffer)
    /// Takes a piece of the body, by reference.
    func send(body: ByteBuffer)
    /// How many bytes the socket would take at once behind all that was sent before; 0 if
    /// ``sendPast(_:)`` leads to nothing.
    var socketWritableBytes: Int { get }
    /// Lets `send` write to the socket itself, if that has everything that was sent before; how
    /// many bytes it says that the socket has taken.
    func sendDirectly(_ send: (CInt) -> Int) -> Int
    /// So many bytes of a body of unknown length follow.
    func beginChunk(bytes: UInt64)
    func endChunk()
    /// A body of unknown length is complete; `trailers` are field lines, each with its end.
    func endChunks(trailers: [UInt8])
    /// The answer is written; another request may be read.
    func responseEnded()
    func flush()
    /// Keeps what the bytes sent belong to until the client's side has taken them.
    func retain(_ entry: MemoryEntry)

    /// The body of the request being answered is wanted; it goes to
    /// ``RequestHandler/uploadArrived(_:now:)``.
    func beginRequestBody()
    /// More of it is taken.
    func resumeRequestBody()
    /// An answer that had to wait is over, or has not begun: what came meanwhile is looked at.
    func resumeRequests()
    /// Ends in such a way that no client can take what it has for a whole answer.
    func abort()
}

extension ResponseWriter {
    @inline(__always)
    func send(head: ByteBuffer, body entry: MemoryEntry) {
        send(head: head)
        retain(entry)
        for index in entry.chunks.indices { send(body: entry.chunks[index]) }
    }
}

/// What most have: no socket of their own.
extension ResponseWriter {
    var socketWritableBytes: Int { 0 }
    func sendDirectly(_ send: (CInt) -> Int) -> Int { 0 }
}
