import NIOCore
import Wire

/// One connection of HTTP/1.1 to an origin: hands its reads to the question that it carries, and
/// reads only when that one wants more.
///
/// Invariants: `hop` is nil while the connection is idle or given up. `held` is empty unless the
/// hop is paused or a read is under way. Once `input` has ended, no read comes.
final class OriginHTTP1: ChannelInboundHandler, OriginCarrier {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let connection: OriginConnection
    var hop: OriginHop?
    private var context: ChannelHandlerContext?
    private var reader: AnswerReader
    private var held: CircularBuffer<ByteBuffer> = []
    private var isPersistent = false
    /// How the origin ended its side; nil while it is open.
    private var input: InputEnd?
    private var isAdvancing = false
    /// Writes whose bytes are not all with the kernel; 0 before it is used again.
    private var unwritten = 0

    init(_ connection: OriginConnection, settings: OriginSettings) {
        self.connection = connection
        reader = AnswerReader(settings: settings)
    }

    func send(_ request: OriginFetchRequest, _ body: OutgoingParts) {
        reader.requestSent(
            isHead: request.isHead, keepsTrailers: request.origin.isNamedByOperator,
            upgrade: request.upgrade)
        isPersistent = false
        write([ByteBuffer(bytes: request.bytes)] + body.framed)
        advance()
    }

    func write(_ body: OutgoingParts) {
        write(body.framed)
    }

    private func write(_ parts: [ByteBuffer]) {
        guard let context, let last = parts.last else { return }
        for part in parts.dropLast() { context.write(wrapOutboundOut(part), promise: nil) }
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { [weak self] in self?.written($0) }
        unwritten += 1
        context.writeAndFlush(wrapOutboundOut(last), promise: written)
    }

    private func written(_ result: Result<Void, any Error>) {
        unwritten -= 1
        switch result {
        case .success: if unwritten == 0 { hop?.requestWritten() }
        case .failure:
            guard input == nil else { return }
            input = .broken
            advance()
        }
    }

    var takesMore: Bool { context?.channel.isWritable ?? false }
    var isWritten: Bool { unwritten == 0 }
    var isOver: Bool { input != nil }

    func foundSilent() {}

    func leave(closing: Bool) {
        hop = nil
        if closing { return connection.close() }
        if let client = connection.client { client.release(connection) } else { connection.close() }
    }

    /// Drops what is held.
    func giveUp() {
        hop = nil
        held.removeAll()
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !connection.isGivenUp else { return }
        let buffer = unwrapInboundIn(data)
        // Anything that comes to an idle connection comes unasked and ends it: bytes behind an
        // answer, or the 408 of an origin that grew tired of waiting.
        guard let hop else { return connection.close() }
        hop.bytesArrived(buffer.readableBytes)
        held.append(buffer)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        advance()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { hop?.connectionTakesMore() }
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard let end = event as? InputEnd else {
            return context.fireUserInboundEventTriggered(event)
        }
        if input == nil { input = end }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if input == nil { input = .orderly }
        advance()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if input == nil { input = .broken }
        context.close(promise: nil)
    }
}

extension OriginHTTP1 {
    /// Hands over what is held while the fetch wants it, then reads more or tells the end of input.
    ///
    /// Calls of the fetch's delegate may come back here; the outermost call does the work.
    func advance() {
        guard !isAdvancing else { return }
        isAdvancing = true
        defer { isAdvancing = false }
        while let hop, !hop.isPaused, let first = held.popFirst() {
            handOver(first, to: hop)
        }
        guard let hop else {
            if input == nil, !connection.isGivenUp { context?.read() }
            return
        }
        if hop.isPaused { return }
        guard let input else { return context?.read() ?? () }
        hop.inputClosed(input)
    }

    private func handOver(_ read: ByteBuffer, to hop: OriginHop) {
        var buffer = read
        while self.hop === hop {
            if hop.isPaused {
                // Also when it is empty: the reader still has to say whether the answer is whole.
                held.prepend(buffer)
                return
            }
            let step = reader.next(&buffer)
            if case .head(let head) = step { isPersistent = head.isPersistent }
            let isOverrun = buffer.readableBytes > 0 || !held.isEmpty
            let isClean = !isOverrun && input == nil && unwritten == 0
            if step == .end, isOverrun { connection.client?.exchange.overran(connection.origin) }
            hop.found(step, isReusable: isPersistent && isClean)
            if case .needsMore = step { return }
        }
    }
}
