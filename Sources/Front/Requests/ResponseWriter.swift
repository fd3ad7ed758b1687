import Ground
import HTTPRules
import NIOCore
import Store

/// The transport of a handler's responses: an HTTP/1.1 connection, or one stream of an HTTP/2
/// connection.
///
/// A response consists of ``send(head:)`` and any number of ``send(body:)``, or of one
/// ``send(head:body:)``; then ``responseEnded()``. Output may be buffered until ``flush()``.
protocol ResponseWriter: AnyObject {
    /// Bytes of responses that the socket has not accepted, or on a stream, that are in no frame
    /// yet.
    var queuedBytes: Int { get }

    /// Sends the head of the final response, as in HTTP/1.1.
    func send(head: ByteBuffer)
    /// Sends the head of the final response and the whole body, by reference; retains the entry
    /// until the client's side has accepted it.
    func send(head: ByteBuffer, body entry: MemoryEntry)
    /// Sends an interim response (RFC 9110 §15.2), as in HTTP/1.1.
    func send(interim: ByteBuffer)
    /// Sends a piece of the body, by reference.
    func send(body: ByteBuffer)
    /// Bytes that the socket would accept at once behind everything sent before; 0 if
    /// ``sendDirectly(_:)`` is not supported.
    var socketWritableBytes: Int { get }
    /// Lets `send` write to the socket, if it has accepted everything sent before.
    ///
    /// - Parameter send: receives the descriptor, and returns the number of bytes accepted.
    /// - Returns: the result of `send`, or 0 if it was not called.
    func sendDirectly(_ send: (CInt) -> Int) -> Int
    /// Begins a chunk of `bytes` bytes in a body of unknown length.
    func beginChunk(bytes: UInt64)
    /// Ends a chunk.
    func endChunk()
    /// Ends a body of unknown length.
    ///
    /// - Parameter trailers: field lines, each with its end.
    func endChunks(trailers: [UInt8])
    /// Ends the response; another request may be read.
    func responseEnded()
    /// Writes buffered output to the socket, as far as that and the flow control of the stream
    /// permit.
    func flush()
    /// Retains the entry that owns bytes sent, until the client's side has accepted them.
    func retain(_ entry: MemoryEntry)

    /// Starts reading the body of the request in progress, for
    /// ``Upload/received(_:now:)``.
    func beginRequestBody()
    /// Resumes reading the request body.
    func resumeRequestBody()
    /// Resumes processing of requests after a response that was pending.
    func resumeRequests()
    /// Aborts the response, so that the client does not take it for complete.
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

/// Defaults for writers without direct access to a socket.
extension ResponseWriter {
    var socketWritableBytes: Int { 0 }
    func sendDirectly(_ send: (CInt) -> Int) -> Int { 0 }
}
