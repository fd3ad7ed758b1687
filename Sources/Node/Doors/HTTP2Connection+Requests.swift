import Ground
import NIOCore
import Store
import Telemetry
import Wire

extension HTTP2Connection: HTTP2ServerDelegate {
    func requestReceived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool
    ) {
        deadline = now + settings.idleTimeout
        // What was written into them is with nghttp2 by now.
        loopContext.headBuffers.begin()
        let exchange = loopContext.reuseExchange()
        exchange.begin(stream, of: self, head: head, linesCount: linesCount, now: now)
        if exchange.detach() { return loopContext.recycle(exchange) }
        // What is behind it waits with it, so that a connection has one request in line.
        guard exchange.isQueued else { return }
        session.pauseReceiving()
        loopContext.missScheduler.queue.append(self, of: exchange.shareHolder)
    }

    func requestRefused(_ stream: HTTP2Stream, _ refusal: RequestParseError, hasBody: Bool) {
        loopContext.reuseExchange().begin(stream, of: self, refusing: refusal)
    }

    func bodyReceived(_ stream: HTTP2Stream, _ bytes: Span<UInt8>) {
        exchange(of: stream)?.bodyArrived(bytes, now: now)
    }

    func bodyEnded(_ stream: HTTP2Stream, trailers: Span<UInt8>) {
        exchange(of: stream)?.bodyEnded(trailers, now: now)
    }

    func streamDrained(_ stream: HTTP2Stream) {
        exchange(of: stream)?.drained()
    }

    func streamClosed(_ stream: HTTP2Stream, code: HTTP2ErrorCode) {
        if let exchange = exchange(of: stream) {
            exchange.streamClosed()
            loopContext.recycle(exchange)
        } else if let source = stream.source {
            retain(unsafe unsafeDowncast(source, to: MemoryEntry.self))
        }
        deadline = now + settings.idleTimeout
    }

    @inline(__always)
    func exchange(of stream: HTTP2Stream) -> HTTP2Exchange? {
        stream.owner.map { unsafe unsafeDowncast($0, to: HTTP2Exchange.self) }
    }
}

extension HTTP2Settings {
    init(_ settings: NodeSettings) {
        self.init(
            concurrentStreamsMax: settings.streamsMax,
            headBytesMax: settings.headLimits.headBytesMax,
            fieldsMax: settings.headLimits.fieldsMax)
    }
}
