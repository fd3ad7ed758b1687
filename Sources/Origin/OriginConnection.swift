import NIOCore
import Wire

/// One connection to an origin: hands its reads to the question that it carries, and reads only
/// when that one wants more.
///
/// Invariants: `hop` is nil while the connection is idle or given up. `held` is empty unless the
/// hop is paused or a read is under way. Once `input` is not open, no read comes.
final class OriginConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Input {
        case open
        /// The origin ended its side as TCP does (FIN).
        case closed
        /// The connection broke.
        case reset
    }

    let id: ConnectionID
    let origin: OriginAuthority
    var hop: OriginHop?
    private var context: ChannelHandlerContext?
    /// The channel to a proxy while the tunnel is being asked for; this is no handler of it yet.
    var channelToProxy: (any Channel)?
    private var reader: AnswerReader
    private var held: CircularBuffer<ByteBuffer> = []
    private var isPersistent = false
    private var input = Input.open
    private var isAdvancing = false
    private var isGivenUp = false
    /// Writes whose bytes are not all with the kernel; 0 before it is used again.
    private var unwritten = 0
    /// It is counted as idle by the gate.
    var isIdle = false
    /// Under which rules of the client it was opened.
    let generation: Int
    /// The gate has asked for its place.
    var isAskedFor = false

    init(
        id: ConnectionID, origin: OriginAuthority, settings: OriginSettings, generation: Int
    ) {
        self.generation = generation
        self.id = id
        self.origin = origin
        reader = AnswerReader(settings: settings)
    }

    /// Writes a request with what there is of its body, and waits for the answer.
    func send(_ request: OriginFetchRequest, _ body: [ByteBuffer]) {
        reader.requestSent(isHead: request.isHead, keepsTrailers: request.origin.isNamedByOperator)
        isPersistent = false
        write([ByteBuffer(bytes: request.bytes)] + body)
        advance()
    }

    /// Writes more of the request's body; a hop that is still there is told when that is done.
    func write(_ parts: [ByteBuffer]) {
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
            guard input == .open else { return }
            input = .reset
            advance()
        }
    }

    /// False while much of what was written is not with the kernel yet, or there is no channel.
    var takesMore: Bool { context?.channel.isWritable ?? false }

    /// Waits without a fetch; anything that comes, comes unasked and ends the connection.
    func becomeIdle() {
        advance()
    }

    /// Nothing more is wanted of the connection, whatever state it is in.
    func close() {
        isGivenUp = true
        hop = nil
        held.removeAll()
        context?.close(promise: nil)
        channelToProxy?.close(promise: nil)
        channelToProxy = nil
    }

    /// True if the connection broke, was closed or given up.
    var isOver: Bool { isGivenUp || input != .open }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if isGivenUp { context.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isGivenUp else { return }
        let buffer = unwrapInboundIn(data)
        guard let hop else { return close() }
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

    func channelInactive(context: ChannelHandlerContext) {
        if input == .open { input = .closed }
        advance()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if input == .open { input = .reset }
        context.close(promise: nil)
    }
}

extension OriginConnection {
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
            if input == .open, !isGivenUp { context?.read() }
            return
        }
        if hop.isPaused { return }
        switch input {
        case .open: context?.read()
        case .closed: hop.inputClosed(orderly: true)
        case .reset: hop.inputClosed(orderly: false)
        }
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
            let isClean =
                buffer.readableBytes == 0 && held.isEmpty && input == .open && unwritten == 0
            hop.found(step, isReusable: isPersistent && isClean)
            if case .needsMore = step { return }
        }
    }
}
