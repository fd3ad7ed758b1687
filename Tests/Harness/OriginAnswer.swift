/// What the origin answers, how, and what goes wrong on the way.
///
/// A value to be built up: what it shall be first, then its stops and its damage.
package struct OriginResponse: Sendable {
    /// How the end of the body is made known.
    package enum Framing: Sendable {
        /// `Content-Length` of the true length.
        case length
        /// `Content-Length` of another length than the body has.
        case falseLength(Int)
        /// Chunks of at most this many bytes.
        case chunked(bytesMax: Int)
        /// HTTP/1.1 `Connection: close`, the body ends with the connection.
        case close
        /// Status line of HTTP/1.0, the body ends with the connection.
        case http10Close
    }

    /// Something to wait for.
    package enum Pause: Sendable {
        /// Until the test opens the gate.
        case gate(Gate)
        /// For a time.
        case seconds(Double)
    }

    /// How a connection ends before its time.
    package enum Disconnect: Sendable {
        /// Orderly, with FIN.
        case close
        /// With RST.
        case reset
    }

    /// Status code and reason.
    package var status: String
    /// Field lines beside those of the framing, `Content-Type` and `Date`.
    package var fields: [String]
    /// The body; none for such as 304.
    package var body: TestImage?
    /// How its end is made known.
    package var framing: Framing
    /// What to wait for before the first byte of the head.
    package var headPauses: [Pause] = []
    /// What to wait for after so many bytes of the body.
    package var bodyPauses: [(offset: Int, stop: Pause)] = []
    /// Where and how the body is cut off; an offset of nil means within the head.
    package var truncation: (offset: Int?, how: Disconnect)?
    /// Whether the connection is closed after the whole answer without having said so.
    package var closesAfter = false
    /// Whole bytes to be sent instead of everything above.
    package var raw: [UInt8]?

    /// An answer with a body.
    ///
    /// - Parameters:
    ///   - body: The body, whose type becomes `Content-Type` unless `fields` holds one.
    ///   - status: Status code and reason.
    ///   - framing: How the end of the body is made known.
    ///   - fields: Further field lines, such as `Cache-FreshnessFields: max-age=60`.
    package init(
        _ body: TestImage?, status: String = "200 OK", framing: Framing = .length,
        fields: [String] = []
    ) {
        self.body = body
        self.status = status
        self.framing = framing
        self.fields = fields
    }

    /// An answer of these very bytes, after which the connection stays open.
    package static func raw(_ bytes: [UInt8]) -> OriginResponse {
        var response = OriginResponse(nil)
        response.raw = bytes
        return response
    }

    /// An answer of text.
    package static func text(
        _ text: String, status: String = "200 OK", contentType: String = "text/plain",
        fields: [String] = []
    ) -> OriginResponse {
        let body = TestImage(name: "text", contentType: contentType, bytes: Array(text.utf8))
        return OriginResponse(body, status: status, fields: fields)
    }

    /// `304 Not Modified` with these field lines.
    package static func notModified(_ fields: [String]) -> OriginResponse {
        OriginResponse(nil, status: "304 Not Modified", fields: fields)
    }

    /// The same answer, waiting before its head.
    package func delayingHead(_ stop: Pause) -> OriginResponse {
        changed { $0.headPauses.append(stop) }
    }

    /// The same answer, waiting once `offset` bytes of the body are on their way.
    package func stalling(at offset: Int, _ stop: Pause) -> OriginResponse {
        changed { $0.bodyPauses.append((offset, stop)) }
    }

    /// The same answer, cut off after `offset` bytes of the body, chunk framing not counted.
    package func truncated(after offset: Int, _ how: Disconnect) -> OriginResponse {
        changed { $0.truncation = (offset, how) }
    }

    /// The same answer, cut off in the middle of its head.
    package func truncatedInHead(_ how: Disconnect) -> OriginResponse {
        changed { $0.truncation = (nil, how) }
    }

    /// The same answer in pieces of `bytesMax` with a pause of `seconds` before each.
    package func dripping(bytesMax: Int, seconds: Double) -> OriginResponse {
        let count = body?.byteCount ?? 0
        return changed { response in
            for offset in stride(from: 0, to: count, by: bytesMax) {
                response.bodyPauses.append((offset, .seconds(seconds)))
            }
        }
    }

    /// The same answer, after which the connection is closed although nothing announced that.
    package func closingConnection() -> OriginResponse {
        changed { $0.closesAfter = true }
    }

    private func changed(_ change: (inout OriginResponse) -> Void) -> OriginResponse {
        var copy = self
        change(&copy)
        return copy
    }
}
