import NIOCore

/// An HTTP/1.1 client connection that sends requests and reads responses in turn.
package final class HTTPConnection {
    /// The underlying socket, for tests that write raw bytes.
    package let socket: Socket
    private var received = ByteBuffer()
    /// How the last read found the connection ended; `nil` while it is open.
    private var end: ResponseEnding?

    private static let pieceBytesMax = 64 * 1_024

    /// Connects to a port of 127.0.0.1, in another network namespace if one is given.
    package init(
        port: Int, from address: String? = nil, receiveBufferBytes: CInt? = nil,
        in space: NetworkNamespace? = nil
    ) throws {
        socket = try Socket(
            port: port, from: address, receiveBufferBytes: receiveBufferBytes, in: space)
    }

    /// Sends a request and reads its response.
    ///
    /// - Parameters:
    ///   - target: The request target.
    ///   - method: The method.
    ///   - host: The value of `Host`.
    ///   - fields: Field lines beside `Host`.
    ///   - expecting: An image to compare the body with, in place of keeping it.
    ///   - seconds: How long to wait for each piece of the response.
    /// - Returns: The response, however it ended.
    /// - Throws: A system error if the request cannot be sent.
    package func get(
        _ target: String, method: String = "GET", host: String = "localhost",
        fields: [String] = [], expecting: TestImage? = nil, seconds: Double = 30
    ) throws -> Response {
        try socket.send(Self.request(target, method: method, host: host, fields: fields))
        return readResponse(method: method, expecting: expecting, seconds: seconds)
    }

    /// Sends a request with a body and reads its response.
    ///
    /// - Parameters:
    ///   - body: The complete body.
    ///   - target: The request target.
    ///   - host: The value of `Host`.
    ///   - method: The method.
    ///   - fields: Field lines beside `Host` and `Content-Length`.
    /// - Returns: The response, however it ended.
    /// - Throws: A system error if the request cannot be sent.
    package func post(
        _ body: String, to target: String, host: String = "localhost", method: String = "POST",
        fields: [String] = []
    ) throws -> Response {
        let length = "Content-Length: \(body.utf8.count)"
        let head = Self.request(
            target, method: method, host: host, fields: fields + [length])
        try socket.send(head + Array(body.utf8))
        return readResponse(method: method)
    }

    /// Returns the bytes of a request without body.
    package static func request(
        _ target: String, method: String = "GET", host: String = "localhost",
        fields: [String] = []
    ) -> [UInt8] {
        let lines = ["\(method) \(target) HTTP/1.1", "Host: \(host)"] + fields
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    /// Reads the next response.
    ///
    /// - Parameters:
    ///   - method: The method of the corresponding request.
    ///   - expecting: An image to compare the body with, in place of keeping it.
    ///   - bodyBytesMax: Body bytes after which the response ends as `abandoned`.
    ///   - seconds: How long to wait for each piece.
    /// - Returns: The response, however it ended.
    package func readResponse(
        method: String = "GET", expecting: TestImage? = nil, bodyBytesMax: Int = .max,
        seconds: Double = 30
    ) -> Response {
        let record = expecting.map { BodyRecorder.comparing($0) } ?? .keeping
        var reader = ResponseReader(method: method, recorder: record)
        while true {
            reader.read(&received)
            if reader.isDone { break }
            if reader.hasHead, reader.bodyByteCount >= bodyBytesMax { reader.end(.abandoned) }
            if let end { reader.end(end) }
            guard !reader.isDone else { break }
            receive(seconds)
            if end == nil, received.readableBytes == 0 { reader.end(.timedOut) }
        }
        return reader.response
    }

    /// Waits for the server to end the connection, and drops all bytes that arrive before.
    ///
    /// - Returns: `cutShort` for an orderly end, `reset`, or `timedOut`.
    package func waitForEnd(seconds: Double = 30) -> ResponseEnding {
        let deadline = Deadline.seconds(seconds)
        while end == nil, !deadline.hasPassed {
            received.clear()
            receive(Double(deadline.millisecondsLeft) / 1_000)
        }
        return end ?? .timedOut
    }

    /// Returns true if the connection stays open and no unread byte arrives within `seconds`.
    package func isIdle(seconds: Double) -> Bool {
        if end == nil, received.readableBytes == 0 { receive(seconds) }
        return end == nil && received.readableBytes == 0
    }

    private func receive(_ seconds: Double) {
        received.discardReadBytes()
        let bytesMax = Self.pieceBytesMax
        switch socket.receive(into: &received, bytesMax: bytesMax, .seconds(seconds)) {
        case .bytes, .timedOut: break
        case .end: end = .truncated
        case .reset: end = .reset
        }
    }
}

/// Request targets of the image interface.
package enum ImageRequestTarget {
    /// Returns `/v1/image?url=…` for an absolute URL; all but unreserved characters are encoded.
    package static func forURL(_ url: String) -> String {
        "/v1/image?url=" + encoded(url)
    }

    /// Returns the text with every byte percent-encoded that is not unreserved (RFC 3986 §2.3).
    package static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF")
        return text.utf8.reduce(into: "") { encoded, byte in
            let isUnreserved =
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: true
                default: false
                }
            if isUnreserved {
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                encoded += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            }
        }
    }
}
