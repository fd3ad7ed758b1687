import NIOCore

/// A client connection of HTTP/2 in clear text that sends and receives single frames.
package final class HTTP2Client {
    /// The underlying socket, for tests that write raw bytes.
    package let socket: Socket
    private var received: [UInt8] = []
    /// How the server ended the connection; `nil` while it is open.
    package private(set) var end: ResponseEnding?
    private var streamNext: UInt32 = 1

    /// Connects to a port of 127.0.0.1 and sends the preface and SETTINGS.
    ///
    /// - Parameters:
    ///   - port: The port.
    ///   - settings: Parameters of SETTINGS, number and value.
    ///   - header: Bytes that a load balancer sends first (PROXY protocol).
    /// - Throws: A system error if the connection fails.
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

    /// Sends a list of frames.
    package func send(_ frames: [HTTP2Frame]) throws {
        try socket.send(frames.flatMap(\.bytes))
    }

    /// Returns the stream identifier of the next request.
    package func nextStreamID() -> UInt32 {
        defer { streamNext += 2 }
        return streamNext
    }

    /// Returns the next frame, or `nil` if none arrives in time or the connection has ended.
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

    /// Reads up to the first frame that satisfies `isWanted`; `nil` if none arrives.
    package func next(
        seconds: Double = 30, where isWanted: (HTTP2Frame) -> Bool
    ) -> HTTP2Frame? {
        while let frame = next(seconds: seconds) {
            if isWanted(frame) { return frame }
        }
        return nil
    }

    /// Reads up to GOAWAY and returns its error code, or `nil` if none arrives.
    package func waitForGoAway(seconds: Double = 30) -> UInt32? {
        next(seconds: seconds) { $0.kind == .goAway }?.code
    }

    /// Drops all further frames and returns how the connection ended.
    package func waitForEnd(seconds: Double = 30) -> ResponseEnding {
        let deadline = Deadline.seconds(seconds)
        while end == nil, !deadline.hasPassed {
            _ = next(seconds: Double(deadline.millisecondsLeft) / 1_000)
        }
        return end ?? .timedOut
    }

    /// Acknowledges SETTINGS and PING, sends a request and reads its response with all windows kept
    /// open.
    ///
    /// - Returns: The status if it has an HPACK static index, the body bytes, and whether the body
    ///   is complete.
    /// - Throws: A system error if nothing can be sent.
    package func get(
        _ path: String, host: String = "localhost"
    ) throws -> (status: Int?, body: [UInt8], isWhole: Bool) {
        let stream = nextStreamID()
        try send(.request(stream, path, host: host))
        return try response(on: stream)
    }

    /// Reads the response on a stream with all windows kept open.
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
