import CLinux
import Glibc
import Ground
package import NIOCore

/// Output buffer of one connection's socket, for clients and peers.
///
/// Flushed bytes go straight to the socket in one system call, past the pipeline; the channel sends
/// the rest when the socket is writable. Without direct access to a socket, as behind TLS,
/// everything goes through the pipeline.
///
/// Confined to its event loop.
package final class SocketWriter {
    /// Pieces that were not flushed.
    package var buffers: [ByteBuffer] = []
    /// The socket; `nil` before the channel is open and from its close on, when the descriptor may
    /// belong to another connection.
    private var socket: NIOBSDSocket.Handle?
    /// True if the channel holds bytes that must be sent first.
    private var hasPipelineBacklog = false
    /// True if ``sendDirectly(_:_:)`` wrote to the socket and the next ``flush(_:)`` must report
    /// it.
    private var hasSentDirectly = false

    /// Maximum number of buffers in one system call.
    private static let piecesMax = 64

    /// Creates a writer that uses the pipeline until ``open(_:)``.
    package init() {
        buffers.reserveCapacity(8)
    }

    /// Enables direct writes to the socket of the channel, if it has one.
    ///
    /// - Precondition: no handler between this writer and the socket transforms the bytes.
    package func open(_ context: ChannelHandlerContext) {
        let pipeline = context.pipeline.syncOperations
        socket =
            try? pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
    }

    /// Drops all pieces and the socket; to be called when the channel is closed or about to be.
    package func close() {
        socket = nil
        buffers.removeAll()
    }

    /// Returns the number of bytes that the socket would accept behind the pieces here, 0 or less
    /// if none; 0 while direct writes are impossible, as behind TLS or while bytes wait in the
    /// channel.
    package func writableBytes(_ context: ChannelHandlerContext) -> Int {
        guard let socket = readySocket(context) else { return 0 }
        return buffers.reduce(Int(clinux_socket_room(socket))) { $0 - $1.readableBytes }
    }

    /// Lets `send` write to the socket, after all pieces here were sent.
    ///
    /// - Parameters:
    ///   - context: the context of the channel.
    ///   - send: receives the descriptor, and returns the number of bytes sent.
    /// - Returns: the result of `send`; 0 if it was not called, because direct writes are not
    ///   possible now or the socket does not accept all pieces.
    package func sendDirectly(_ context: ChannelHandlerContext, _ send: (CInt) -> Int) -> Int {
        guard let socket = readySocket(context) else { return 0 }
        hasSentDirectly = true
        while !buffers.isEmpty {
            guard self.send(to: socket, moreFollows: true) else { return 0 }
        }
        return send(socket)
    }

    /// Returns the socket if it has accepted everything that went through the pipeline; `nil` if
    /// not, or without direct access.
    private func readySocket(_ context: ChannelHandlerContext) -> NIOBSDSocket.Handle? {
        if hasPipelineBacklog { hasPipelineBacklog = context.channel.queuedBytes > 0 }
        return hasPipelineBacklog ? nil : socket
    }

    /// Adds a piece to the output.
    @inline(__always)
    package func append(_ piece: ByteBuffer) {
        buffers.append(piece)
    }

    /// Sends all pieces.
    ///
    /// - Returns: true if the socket has accepted everything, or all but one byte that the channel
    ///   holds; false if there was nothing to send, or if the channel will report completion by
    ///   becoming writable.
    package func flush(_ context: ChannelHandlerContext) -> Bool {
        guard !buffers.isEmpty || hasSentDirectly else { return false }
        hasSentDirectly = false
        if let socket = readySocket(context) {
            while !buffers.isEmpty {
                guard send(to: socket, moreFollows: false) else { break }
            }
            if buffers.isEmpty { return true }
            hasPipelineBacklog = true
        }
        var count = 0
        // Taken out and put back, to keep its capacity: a write may fail, which closes this writer.
        var rest = buffers
        buffers = []
        for piece in rest {
            count += piece.readableBytes
            context.write(NIOAny(piece), promise: nil)
        }
        rest.removeAll(keepingCapacity: true)
        if buffers.isEmpty { buffers = rest }
        context.flush()
        // One byte alone does not pass the water mark, which cannot be lower, so the channel would
        // never report that it became writable.
        return count == 1 && context.channel.isWritable
    }

    /// Sends the first pieces; returns false if the socket does not accept all of them.
    ///
    /// An error is left for the channel, which finds it on its next write and handles it.
    private func send(to socket: NIOBSDSocket.Handle, moreFollows: Bool) -> Bool {
        let flags = MSG_NOSIGNAL | (moreFollows ? MSG_MORE : 0)
        let count = min(buffers.count, Self.piecesMax)
        var bytes = 0
        let taken = unsafe withUnsafeTemporaryAllocation(of: iovec.self, capacity: count) {
            vector in
            for index in 0..<count {
                // The address stays valid while `buffers` holds the piece.
                let piece = unsafe buffers[index].withUnsafeReadableBytes { unsafe $0 }
                bytes += piece.count
                unsafe vector.initializeElement(
                    at: index,
                    to: iovec(
                        iov_base: UnsafeMutableRawPointer(mutating: piece.baseAddress),
                        iov_len: piece.count))
            }
            var message = unsafe msghdr()
            unsafe message.msg_iov = vector.baseAddress
            unsafe message.msg_iovlen = count
            while true {
                let taken = unsafe sendmsg(socket, &message, CInt(flags))
                if taken >= 0 || errno != EINTR { return taken }
            }
        }
        guard taken < bytes else {
            buffers.removeFirst(count)
            return true
        }
        removeSent(max(0, taken))
        return false
    }

    /// Removes the first `bytes` bytes from ``buffers``.
    private func removeSent(_ bytes: Int) {
        var (left, whole) = (bytes, 0)
        while left > 0, buffers[whole].readableBytes <= left {
            left -= buffers[whole].readableBytes
            whole += 1
        }
        buffers.removeFirst(whole)
        if left > 0 { buffers[0].moveReaderIndex(forwardBy: left) }
    }
}

extension Channel {
    /// Bytes written to the channel that the socket has not accepted; 0 if the channel cannot tell.
    package var queuedBytes: Int {
        (try? syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }
}

/// Descriptions of connection and socket errors for people.
package enum ErrorDescription {
    /// Returns the description of an error, the system's own for a system error.
    package static func text(_ error: any Error) -> String {
        switch error {
        case let error as IOError: unsafe String(cString: strerror(error.errnoCode))
        case ChannelError.connectTimeout: "timed out"
        default: "\(error)"
        }
    }
}

/// Failure to open a port.
///
/// Nothing was changed; a retry helps only if the cause is removed.
package struct ListenError: Error, CustomStringConvertible {
    /// The address that could not be bound.
    let address: String
    /// Description of the system error.
    let reason: String

    /// Creates an error from its parts.
    package init(address: String, reason: String) {
        self.address = address
        self.reason = reason
    }

    /// The address and the reason, for the operator.
    package var description: String { "cannot listen on \(address): \(reason)" }
}
