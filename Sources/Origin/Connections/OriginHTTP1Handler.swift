import NIOCore
import Wire

/// One HTTP/1.1 connection to an origin: passes what it reads to its transaction, and reads only
/// when the transaction accepts more.
///
/// Invariants: `transaction` is `nil` while the connection is idle or abandoned. `pendingReads` is
/// empty unless the transaction is paused or a read is in progress. Once `inputCloseReason` is set,
/// no read follows.
final class OriginHTTP1Handler: ChannelInboundHandler, OriginTransport {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let connection: OriginConnection
    var transaction: OriginTransaction?
    private var context: ChannelHandlerContext?
    private var reader: ResponseReader
    private var pendingReads: CircularBuffer<ByteBuffer> = []
    /// True if the response allows the connection to be used for another one.
    private var isPersistent = false
    /// How the origin closed its side; `nil` while it is open.
    private var inputCloseReason: InputCloseReason?
    private var isAdvancing = false
    /// Writes whose bytes the kernel has not accepted in full; 0 before the connection is reused.
    private var pendingWrites = 0

    init(_ connection: OriginConnection, settings: OriginSettings) {
        self.connection = connection
        reader = ResponseReader(settings: settings)
    }

    func send(_ request: OriginFetchRequest, _ body: OutgoingBodyPart) {
        reader.requestSent(
            isHead: request.isHead, keepsTrailers: request.origin.isOperatorConfigured,
            upgrade: request.upgrade)
        isPersistent = false
        write([ByteBuffer(bytes: request.bytes)] + body.framed)
        deliverPending()
    }

    func write(_ body: OutgoingBodyPart) {
        write(body.framed)
    }

    /// Writes buffers in order; the transaction is notified once the kernel has accepted them all.
    private func write(_ parts: [ByteBuffer]) {
        guard let context, let last = parts.last else { return }
        for part in parts.dropLast() { context.write(wrapOutboundOut(part), promise: nil) }
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { [weak self] in self?.written($0) }
        pendingWrites += 1
        context.writeAndFlush(wrapOutboundOut(last), promise: written)
    }

    /// Reports that everything is written; a failed write counts as a reset of the connection.
    private func written(_ result: Result<Void, any Error>) {
        pendingWrites -= 1
        switch result {
        case .success: if pendingWrites == 0 { transaction?.requestWritten() }
        case .failure:
            guard inputCloseReason == nil else { return }
            inputCloseReason = .reset
            deliverPending()
        }
    }

    var isWritable: Bool { context?.channel.isWritable ?? false }
    var isFlushed: Bool { pendingWrites == 0 }
    var isUnusable: Bool { inputCloseReason != nil }

    /// Does nothing, because the connection is closed with its transaction.
    func responseTimedOut() {}

    /// Detaches the transaction, and closes the connection or returns it to the client for reuse.
    func release(closing: Bool) {
        transaction = nil
        if closing { return connection.close() }
        if let client = connection.client { client.release(connection) } else { connection.close() }
    }

    /// Detaches the transaction, which is not notified, and drops held data.
    func abandon() {
        transaction = nil
        pendingReads.removeAll()
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !connection.isAbandoned else { return }
        let buffer = unwrapInboundIn(data)
        // Bytes on an idle connection are unsolicited and end it: bytes after a response, or the
        // 408 of an origin whose request timeout expired.
        guard let transaction else { return connection.close() }
        transaction.bytesReceived(buffer.readableBytes)
        pendingReads.append(buffer)
    }

    /// Delivers what was read, and requests the next read if the transaction accepts more.
    func channelReadComplete(context: ChannelHandlerContext) {
        deliverPending()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { transaction?.connectionBecameWritable() }
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard let end = event as? InputCloseReason else {
            return context.fireUserInboundEventTriggered(event)
        }
        if inputCloseReason == nil { inputCloseReason = end }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if inputCloseReason == nil { inputCloseReason = .orderly }
        deliverPending()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if inputCloseReason == nil { inputCloseReason = .reset }
        context.close(promise: nil)
    }
}

extension OriginHTTP1Handler {
    /// Delivers held data while the transaction accepts it, then reads more or reports the end of
    /// input.
    ///
    /// The delegate's callbacks may re-enter this method; the outermost call does the work.
    func deliverPending() {
        guard !isAdvancing else { return }
        isAdvancing = true
        defer { isAdvancing = false }
        while let transaction, !transaction.isPaused, let first = pendingReads.popFirst() {
            deliver(first, to: transaction)
        }
        guard let transaction else {
            if inputCloseReason == nil, !connection.isAbandoned { context?.read() }
            return
        }
        if transaction.isPaused { return }
        guard let inputCloseReason else { return context?.read() ?? () }
        transaction.inputClosed(inputCloseReason)
    }

    /// Reports the events in the bytes of one read, until none is left, the transaction pauses, or
    /// the connection no longer belongs to it.
    private func deliver(_ read: ByteBuffer, to hop: OriginTransaction) {
        var buffer = read
        while self.transaction === hop {
            if hop.isPaused {
                // Even if it is empty: the reader still has to report whether the response is
                // complete.
                pendingReads.prepend(buffer)
                return
            }
            let step = reader.next(&buffer)
            if case .head(let head) = step { isPersistent = head.isPersistent }
            let isOverrun = buffer.readableBytes > 0 || !pendingReads.isEmpty
            let isClean = !isOverrun && inputCloseReason == nil && pendingWrites == 0
            if step == .end, isOverrun {
                connection.client?.coordinator.recordOverrun(connection.origin)
            }
            hop.responseEventReceived(step, isReusable: isPersistent && isClean)
            if case .needsMore = step { return }
        }
    }
}
