import Glibc
import NIOCore

final class ByteOriginHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let origin: ByteOrigin
    private var script: ArraySlice<ByteOrigin.Step>
    private var received = ByteBuffer()
    private var isBusy = false

    init(_ origin: ByteOrigin, script: [ByteOrigin.Step]) {
        self.origin = origin
        self.script = script[...]
    }

    func channelActive(context: ChannelHandlerContext) {
        runScript(context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        script = []
        origin.connectionClosed()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        received.writeImmutableBuffer(unwrapInboundIn(data))
        runScript(context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // The client is gone; what it did not wait for is not sent.
        if case .inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    /// A step is taken from the script before it is done, since it may come back here when it is.
    private func runScript(_ context: ChannelHandlerContext) {
        while !isBusy, let step = script.first {
            switch step {
            case .awaitRequestHead:
                guard let head = readThrough("\r\n\r\n") else { return }
                origin.record(String(buffer: head))
            case .awaitBody(let count):
                guard let body = received.readSlice(length: count) else { return }
                origin.record(body: body)
            case .awaitBodyEnding(let text):
                guard let body = readThrough(text) else { return }
                origin.record(body: body)
            default: break
            }
            script.removeFirst()
            perform(step, context)
        }
    }

    /// What came up to and with `text`; nil if that has not come.
    private func readThrough(_ text: String) -> ByteBuffer? {
        guard let range = received.readableBytesView.firstRange(of: Array(text.utf8)) else {
            return nil
        }
        return received.readSlice(length: range.upperBound - received.readerIndex)
    }

    private func perform(_ step: ByteOrigin.Step, _ context: ChannelHandlerContext) {
        switch step {
        case .awaitRequestHead, .awaitBody, .awaitBodyEnding: break
        case .send(let text):
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
        case .drip(let text):
            for byte in text.utf8 {
                let buffer = ByteBuffer(bytes: [byte])
                context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
            }
        case .trickle(let text, let milliseconds):
            isBusy = true
            trickle(Array(text.utf8)[...], .milliseconds(milliseconds), context)
        case .sendBytes(let bytes):
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
        case .sendRepeatedly(let text):
            isBusy = true
            let count = max(1, 4096 / text.utf8.count)
            repeated(ByteBuffer(string: String(repeating: text, count: count)), context)
        case .flood(let count):
            isBusy = true
            flood(from: 0, to: count, context)
        case .stopReading:
            let options = context.channel.syncOptions
            try? options?.setOption(.autoRead, value: false)
            origin.gate.hop(to: context.eventLoop).assumeIsolated().whenComplete { _ in
                try? options?.setOption(.autoRead, value: true)
            }
        case .awaitGate: wait(for: origin.gate.hop(to: context.eventLoop), context)
        case .close:
            script = []
            context.close(mode: .all, promise: nil)
        case .reset:
            script = []
            let socket = context.channel as? any SocketOptionProvider
            socket?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
                .assumeIsolated().whenComplete { _ in context.close(promise: nil) }
        }
    }

    private func wait(for future: EventLoopFuture<Void>, _ context: ChannelHandlerContext) {
        isBusy = true
        future.assumeIsolated().whenComplete { _ in
            self.isBusy = false
            self.runScript(context)
        }
    }

    private func trickle(
        _ bytes: ArraySlice<UInt8>, _ pause: TimeAmount, _ context: ChannelHandlerContext
    ) {
        guard let first = bytes.first, context.channel.isActive else {
            isBusy = false
            return runScript(context)
        }
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: [first])), promise: nil)
        context.eventLoop.assumeIsolated().scheduleTask(in: pause) {
            self.trickle(bytes.dropFirst(), pause, context)
        }
    }

    private func repeated(_ piece: ByteBuffer, _ context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(piece)).assumeIsolated().whenComplete { result in
            guard case .success = result else { return }
            context.eventLoop.assumeIsolated().execute { self.repeated(piece, context) }
        }
    }

    private func flood(from start: Int, to end: Int, _ context: ChannelHandlerContext) {
        guard start < end else {
            isBusy = false
            return runScript(context)
        }
        let count = min(ByteOrigin.block.readableBytes, end - start)
        guard let piece = ByteOrigin.block.getSlice(at: 0, length: count) else { return }
        context.writeAndFlush(wrapOutboundOut(piece)).assumeIsolated().whenComplete { result in
            guard case .success = result else { return }
            self.origin.recordSent(count)
            // Not at once: a write that is done at once would come back here deeper and deeper.
            context.eventLoop.assumeIsolated().execute {
                self.flood(from: start + count, to: end, context)
            }
        }
    }
}
