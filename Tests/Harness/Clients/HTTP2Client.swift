import NIOCore

/// A connection of HTTP/2 in clear text for tests: frames out, frames in.
package final class HTTP2Client {
    /// The socket beneath, for tests that write bytes of their own.
    package let socket: Socket
    private var received: [UInt8] = []
    /// How the server ended the connection, if it did.
    package private(set) var end: ResponseEnding?
    private var streamNext: UInt32 = 1

    /// Connects to a port of 127.0.0.1 and sends the preface and SETTINGS.
    ///
    /// - Parameters:
    ///   - port: The port.
    ///   - settings: Parameters of SETTINGS, number and value.
    ///   - header: What a load balancer sends before.
    /// - Throws: What the system says.
    package init(
        port: Int, settings: [(UInt16, UInt32)] = [], behind header: [UInt8] = []
    ) throws {
        socket = try Socket(port: port)
        try socket.send(header + HTTP2Frame.preface + HTTP2Frame.settings(settings).bytes)
    }

    /// Sends frames.
    package func send(_ frames: HTTP2Frame...) throws {
        try send(frames)
    }

    /// Sends frames.
    package func send(_ frames: [HTTP2Frame]) throws {
        try socket.send(frames.flatMap(\.bytes))
    }

    /// A number for the next request.
    package func nextStreamID() -> UInt32 {
        defer { streamNext += 2 }
        return streamNext
    }

    /// The next frame; nil if none came in time or the connection has ended.
    package func next(seconds: Double = 30) -> HTTP2Frame? {
        let deadline = Deadline.seconds(seconds)
        while true {
            if let frame = HTTP2Frame.take(from: &received) { return frame }
            guard end == nil else { return nil }
            var buffer = ByteBuffer()
            switch socket.receive(into: &buffer, bytesMax: 64 * 1_024, deadline) {
            case .bytes: received += buffer.readableBytesView
            case .end: end = .truncated
            case .reset: end = .reset
            case .timedOut: return nil
            }
        }
    }

    /// Reads up to the frame that `isWanted`; nil if it does not come.
    package func next(
        seconds: Double = 30, where isWanted: (HTTP2Frame) -> Bool
    ) -> HTTP2Frame? {
        while let frame = next(seconds: seconds) {
            if isWanted(frame) { return frame }
        }
        return nil
    }

    /// Reads up to GOAWAY and gives its code; nil if none comes.
    package func waitForGoAway(seconds: Double = 30) -> UInt32? {
        next(seconds: seconds) { $0.kind == .goAway }?.code
    }

    /// Drops what still comes, and says how the connection ended.
    package func waitForEnd(seconds: Double = 30) -> ResponseEnding {
        let deadline = Deadline.seconds(seconds)
        while end == nil, !deadline.hasPassed {
            _ = next(seconds: Double(deadline.millisecondsLeft) / 1_000)
        }
        return end ?? .timedOut
    }

    /// Sends SETTINGS and PING their answers, and reads a request's answer with all windows open.
    ///
    /// - Returns: The status if it is a common one, the bytes of the body, and whether it is whole.
    /// - Throws: What the system says if nothing can be sent.
    package func get(
        _ path: String, host: String = "localhost"
    ) throws -> (status: Int?, body: [UInt8], isWhole: Bool) {
        let stream = nextStreamID()
        try send(.request(stream, path, host: host))
        return try response(on: stream)
    }

    /// Reads the answer on a stream, all windows kept open.
    package func response(
        on stream: UInt32
    ) throws -> (status: Int?, body: [UInt8], isWhole: Bool) {
        var status: Int?
        var body: [UInt8] = []
        while let frame = next() {
            switch frame.kind {
            case .settings where !frame.isSet(HTTP2Frame.acknowledged):
                try send(.settingsAcknowledgement)
            case .ping where !frame.isSet(HTTP2Frame.acknowledged):
                try send(
                    HTTP2Frame(.ping, flags: HTTP2Frame.acknowledged, payload: frame.payload))
            case .reset where frame.stream == stream: return (status, body, false)
            case .headers where frame.stream == stream:
                if status == nil { status = FieldBlock.status(frame.payload) }
            case .data where frame.stream == stream:
                body += frame.payload
                let count = UInt32(frame.payload.count)
                if count > 0 { try send(.window(0, count), .window(stream, count)) }
            default: break
            }
            guard frame.stream == stream, frame.isSet(HTTP2Frame.endStream) else { continue }
            if frame.kind == .headers || frame.kind == .data { return (status, body, true) }
        }
        return (status, body, false)
    }
}
