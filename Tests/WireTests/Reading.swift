import Ground
import HTTPRules
import Wire

/// A field line as bytes, for comparison.
struct ReadField: Equatable {
    var name: [UInt8]
    var value: [UInt8]
}

/// One message as it was parsed.
struct ReadMessage: Equatable {
    /// Method and target, or the status in decimal.
    var start: [UInt8]
    var host: [UInt8] = []
    var isHTTP10: Bool
    var fields: [ReadField]
    var framing: BodyFraming
    var isPersistent: Bool
    var expectsContinue = false
    var body: [UInt8] = []
    /// False if the bytes ended before the body did.
    var isWhole = false
}

/// All messages of one connection, and how it ended.
struct Reading: Equatable {
    enum Ending: Equatable {
        case waiting
        /// The last message closes the connection.
        case closing
        case requestRefused(RequestParseError)
        case responseRefused(ResponseParseError)
        case bodyRefused(BodyDecodingError)
    }

    var messages: [ReadMessage] = []
    var ending = Ending.waiting

    var heads: Int { messages.count }
    var whole: Int { messages.count { $0.isWhole } }
}

extension Reading {
    /// Reads requests from bytes that arrive up to each of `stops` in turn.
    static func requests(
        _ bytes: [UInt8], stops: [Int], limits: HeadLimits = HeadLimits()
    ) -> Reading {
        var reading = Reading()
        var parser = RequestParser(limits: limits)
        var body: BodyDecoder?
        var position = 0
        for stop in stops {
            let span = bytes.span.extracting(0..<stop)
            while reading.ending == .waiting {
                if body != nil {
                    guard reading.readBody(&body, span, &position) else { break }
                    continue
                }
                switch parser.parse(span, from: position) {
                case .incomplete: break
                case .refused(let refusal): reading.ending = .requestRefused(refusal)
                case .head(let end):
                    reading.messages.append(message(parser, span))
                    body = BodyDecoder(parser.framing)
                    position = end
                    continue
                }
                break
            }
        }
        return reading
    }

    private static func message(
        _ parser: borrowing RequestParser, _ span: Span<UInt8>
    ) -> ReadMessage {
        var fields: [ReadField] = []
        for index in 0..<parser.fields.count {
            let line = parser.fields[index]
            fields.append(
                ReadField(name: span.copy(line.name.range), value: span.copy(line.value.range)))
        }
        return ReadMessage(
            start: span.copy(parser.methodName.range) + [0x20] + span.copy(parser.target.range),
            host: span.copy(parser.host.range), isHTTP10: parser.isHTTP10, fields: fields,
            framing: parser.framing, isPersistent: parser.isPersistent,
            expectsContinue: parser.expectsContinue)
    }

    /// Reads responses; after the last stop the connection is closed.
    static func responses(_ bytes: [UInt8], stops: [Int], requestIsHead: Bool = false) -> Reading {
        var reading = Reading()
        var parser = ResponseParser()
        var body: BodyDecoder?
        var position = 0
        for stop in stops {
            let span = bytes.span.extracting(0..<stop)
            while reading.ending == .waiting {
                if body != nil {
                    guard reading.readBody(&body, span, &position) else { break }
                    continue
                }
                switch parser.parse(span, from: position, requestIsHead: requestIsHead) {
                case .incomplete: break
                case .refused(let refusal): reading.ending = .responseRefused(refusal)
                case .interim(let head, let end):
                    reading.messages.append(
                        ReadMessage(
                            start: Array("\(head.status)".utf8), isHTTP10: false, fields: [],
                            framing: .none, isPersistent: true, isWhole: true))
                    position = end
                    continue
                case .head(let head, let end):
                    reading.messages.append(message(head))
                    body = BodyDecoder(head.framing)
                    position = end
                    continue
                }
                break
            }
        }
        if let body, let last = reading.messages.indices.last,
            body.isAtEnd || reading.messages[last].framing == .untilClose
        {
            reading.messages[last].isWhole = true
        }
        return reading
    }

    private static func message(_ head: FramedResponseHead) -> ReadMessage {
        let span = head.head.bytes.span
        let fields = head.head.lines.map {
            ReadField(name: span.copy($0.name.range), value: span.copy($0.value.range))
        }
        return ReadMessage(
            start: Array("\(head.head.status)".utf8), isHTTP10: span[7] == UInt8(ascii: "0"),
            fields: fields,
            framing: head.framing, isPersistent: head.isPersistent)
    }

    /// False if more bytes are needed.
    private mutating func readBody(
        _ body: inout BodyDecoder?, _ span: Span<UInt8>, _ position: inout Int
    ) -> Bool {
        guard let step = body?.next(span, from: position) else { return false }
        switch step {
        case .data(let extent, let next):
            messages[messages.count - 1].body += span.copy(extent.range)
            position = next
        case .needsMore:
            position = span.count
            return false
        case .refused(let refusal): ending = .bodyRefused(refusal)
        case .end(let next):
            position = next
            messages[messages.count - 1].isWhole = true
            body = nil
            if !messages[messages.count - 1].isPersistent { ending = .closing }
        }
        return true
    }

    static func requests(_ text: String, limits: HeadLimits = HeadLimits()) -> Reading {
        let bytes = Array(text.utf8)
        return requests(bytes, stops: [bytes.count], limits: limits)
    }

    static func responses(_ text: String, requestIsHead: Bool = false) -> Reading {
        let bytes = Array(text.utf8)
        return responses(bytes, stops: [bytes.count], requestIsHead: requestIsHead)
    }
}

/// The bytes of a text in which each scalar up to U+00FF stands for one byte.
func latin1(_ text: String) -> [UInt8] {
    text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
}
