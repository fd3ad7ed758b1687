/// What the origin answers, how, and what goes wrong on the way.
///
/// A value to be built up: what it shall be first, then its stops and its damage.
package struct OriginAnswer: Sendable {
    /// How the end of the body is made known.
    package enum Framing: Sendable {
        /// `Content-Length` of the true length.
        case length
        /// `Content-Length` of another length than the body has.
        case claimed(Int)
        /// Chunks of at most this many bytes.
        case chunked(bytesMax: Int)
        /// HTTP/1.1 `Connection: close`, the body ends with the connection.
        case close
        /// Status line of HTTP/1.0, the body ends with the connection.
        case close10
    }

    /// Something to wait for.
    package enum Stop: Sendable {
        /// Until the test opens the gate.
        case gate(Gate)
        /// For a time.
        case seconds(Double)
    }

    /// How a connection ends before its time.
    package enum Cut: Sendable {
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
    package var headStops: [Stop] = []
    /// What to wait for after so many bytes of the body.
    package var bodyStops: [(offset: Int, stop: Stop)] = []
    /// Where and how the body is cut off; an offset of nil means within the head.
    package var cut: (offset: Int?, how: Cut)?
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
    ///   - fields: Further field lines, such as `Cache-Control: max-age=60`.
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
    package static func raw(_ bytes: [UInt8]) -> OriginAnswer {
        var answer = OriginAnswer(nil)
        answer.raw = bytes
        return answer
    }

    /// An answer of text.
    package static func text(
        _ text: String, status: String = "200 OK", contentType: String = "text/plain",
        fields: [String] = []
    ) -> OriginAnswer {
        let body = TestImage(name: "text", contentType: contentType, bytes: Array(text.utf8))
        return OriginAnswer(body, status: status, fields: fields)
    }

    /// `304 Not Modified` with these field lines.
    package static func notModified(_ fields: [String]) -> OriginAnswer {
        OriginAnswer(nil, status: "304 Not Modified", fields: fields)
    }

    /// The same answer, waiting before its head.
    package func holdingHead(_ stop: Stop) -> OriginAnswer {
        changed { $0.headStops.append(stop) }
    }

    /// The same answer, waiting once `offset` bytes of the body are on their way.
    package func stalling(at offset: Int, _ stop: Stop) -> OriginAnswer {
        changed { $0.bodyStops.append((offset, stop)) }
    }

    /// The same answer, cut off after `offset` bytes of the body, chunk framing not counted.
    package func cut(after offset: Int, _ how: Cut) -> OriginAnswer {
        changed { $0.cut = (offset, how) }
    }

    /// The same answer, cut off in the middle of its head.
    package func cutInHead(_ how: Cut) -> OriginAnswer {
        changed { $0.cut = (nil, how) }
    }

    /// The same answer in pieces of `bytesMax` with a pause of `seconds` before each.
    package func dripping(bytesMax: Int, seconds: Double) -> OriginAnswer {
        let count = body?.byteCount ?? 0
        return changed { answer in
            for offset in stride(from: 0, to: count, by: bytesMax) {
                answer.bodyStops.append((offset, .seconds(seconds)))
            }
        }
    }

    /// The same answer, after which the connection is closed although nothing announced that.
    package func closingAfter() -> OriginAnswer {
        changed { $0.closesAfter = true }
    }

    private func changed(_ change: (inout OriginAnswer) -> Void) -> OriginAnswer {
        var copy = self
        change(&copy)
        return copy
    }
}
