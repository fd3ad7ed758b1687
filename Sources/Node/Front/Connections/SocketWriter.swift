import CLinux
import Glibc
import Ground
package import NIOCore

/// The bytes on their way to a connection's socket, of clients and of peers.
///
/// What the socket takes at once goes to it in one call, past the pipeline; the channel sends the
/// rest when the socket is ready for it. Without a socket of its own, as behind TLS, it all goes
/// through the pipeline.
///
/// Confined to its event loop.
package final class SocketWriter {
    /// What was not handed on yet.
    var buffers: [ByteBuffer] = []
    /// Nil before the channel is opened and as soon as it is closed: its number may be another
    /// connection's by then.
    private var socket: NIOBSDSocket.Handle?
    /// The channel has bytes that must go first.
    private var hasPipelineBacklog = false
    /// The socket has taken something past ``flush(_:)``, which has yet to say so.
    private var hasSentDirectly = false

    /// Buffers handed to the socket in one call.
    private static let piecesMax = 64

    package init() {
        buffers.reserveCapacity(8)
    }

    /// Writes to the socket of the channel, which must be the next to get what is written here.
    package func open(_ context: ChannelHandlerContext) {
        let pipeline = context.pipeline.syncOperations
        socket =
            try? pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
    }

    /// The channel is closed, or about to be.
    package func close() {
        socket = nil
        buffers.removeAll()
    }

    /// How many bytes the socket would take at once behind what was written here; 0 behind TLS,
    /// where nothing can go past the pipeline.
    func writableBytes(_ context: ChannelHandlerContext) -> Int {
        guard let socket = readySocket(context) else { return 0 }
        return buffers.reduce(Int(clinux_socket_room(socket))) { $0 - $1.readableBytes }
    }

    /// Lets `send` write to the socket, behind everything that was written here; what it gives, or
    /// 0 if the socket does not take as much.
    func sendDirectly(_ context: ChannelHandlerContext, _ send: (CInt) -> Int) -> Int {
        guard let socket = readySocket(context) else { return 0 }
        hasSentDirectly = true
        while !buffers.isEmpty {
            guard self.send(to: socket, moreFollows: true) else { return 0 }
        }
        return send(socket)
    }

    /// The socket if it has everything that went through the pipeline.
    private func readySocket(_ context: ChannelHandlerContext) -> NIOBSDSocket.Handle? {
        if hasPipelineBacklog { hasPipelineBacklog = context.channel.queuedBytes > 0 }
        return hasPipelineBacklog ? nil : socket
    }

    @inline(__always)
    package func append(_ piece: ByteBuffer) {
        buffers.append(piece)
    }

    /// Hands on everything; true if the socket has taken it, false if there was nothing, or if the
    /// channel tells later that it did, by becoming writable.
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
        // Taken out and put back, with its room: a write may fail, which closes this writer.
        var rest = buffers
        buffers = []
        for piece in rest {
            count += piece.readableBytes
            context.write(NIOAny(piece), promise: nil)
        }
        rest.removeAll(keepingCapacity: true)
        if buffers.isEmpty { buffers = rest }
        context.flush()
        // One byte alone does not pass the mark, which cannot be lower: the channel would never
        // become writable.
        return count == 1 && context.channel.isWritable
    }

    /// Sends the first pieces; false if the socket does not take more.
    ///
    /// An error is left for the channel to find, which knows what to do then.
    private func send(to socket: NIOBSDSocket.Handle, moreFollows: Bool) -> Bool {
        let flags = MSG_NOSIGNAL | (moreFollows ? MSG_MORE : 0)
        let count = min(buffers.count, Self.piecesMax)
        var bytes = 0
        let taken = unsafe withUnsafeTemporaryAllocation(of: iovec.self, capacity: count) {
            vector in
            for index in 0..<count {
                // Stays where it is while `pieces` holds it.
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
    /// Bytes that were written and that the socket has not taken.
    var queuedBytes: Int {
        (try? syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }
}

/// Whether a client that does not take everything at once still takes something.
struct WriteStall {
    /// Bytes that waited for the socket when `deadline` was set; nil if the socket has taken
    /// everything.
    private var queuedBytes: Int?
    /// The client must have taken something by this instant.
    private var deadline = Instant.distantFuture

    var isActive: Bool { queuedBytes != nil }

    /// The socket holds `bytes` that the client does not take.
    mutating func begin(_ bytes: Int, _ now: Instant, _ settings: NodeSettings) {
        queuedBytes = bytes
        deadline = now + settings.sendTimeout
    }

    mutating func end() {
        queuedBytes = nil
    }

    /// False if the client has taken nothing for as long as it may; `bytes` wait now.
    mutating func checkProgress(_ bytes: Int, _ now: Instant, _ settings: NodeSettings) -> Bool {
        if bytes != queuedBytes { begin(bytes, now, settings) }
        return now < deadline
    }

    mutating func reconfigure(_ settings: NodeSettings, after old: NodeSettings) {
        guard isActive else { return }
        deadline.shift(from: old.sendTimeout, to: settings.sendTimeout)
    }
}

extension Instant {
    /// A deadline that was set with the time limit `old` is as if it had been set with `new`.
    mutating func shift(from old: Interval, to new: Interval) {
        self = self + Interval(nanoseconds: new.nanoseconds - old.nanoseconds)
    }
}
