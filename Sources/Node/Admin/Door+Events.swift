import Admin
import Ground
import NIOCore

/// What goes on being sent to a client that looks on.
final class EventStream {
    private let task: RepeatedTask

    /// Calls `send` every `interval`, on the loop.
    init(
        on loop: any EventLoop, every interval: Interval, _ send: @escaping @Sendable () -> Void
    ) {
        let time = TimeAmount.nanoseconds(interval.nanoseconds)
        task = loop.scheduleRepeatedTask(initialDelay: time, delay: time) { _ in send() }
    }

    deinit {
        task.cancel()
    }
}

/// Server-sent events (WHATWG HTML §9.2).
extension RequestHandler {
    /// Tells the client the statistics, at once and from then on, until it goes.
    func startEventStream(every interval: Interval) {
        closesAfterResponse = true
        beginResponse(status: 200)
        var head = ByteBuffer(string: "HTTP/1.1 200 OK\r\n")
        head.writeBytes(context.dateLine.bytes)
        head.writeString(
            "Content-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                + "X-Content-Type-Options: nosniff\r\nX-Request-Id: \(requestID)\r\n"
                + "Connection: close\r\n\r\n")
        writer?.send(head: head)
        guard !isHeadRequest else { return finishResponse() }
        isResponding = true
        deadline = .distantFuture
        // Used on the loop alone.
        nonisolated(unsafe) weak let handler = self
        eventStream = EventStream(on: context.loop, every: interval) { unsafe handler?.sendEvent() }
        sendEvent()
    }

    private func sendEvent() {
        // Who does not take them misses some.
        guard eventStream != nil, queuedBytes < Self.eventBytesMax else { return }
        let text = "event: statistics\ndata: \(context.node.statistics().json.compactText)\n\n"
        writer?.send(body: ByteBuffer(string: text))
        writer?.flush()
    }

    private static let eventBytesMax = 64 << 10
}
