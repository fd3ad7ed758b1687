import Foundation

/// How the reading of a response came to its end.
package enum ResponseEnding: Sendable, Equatable {
    /// As its framing said: length reached, last chunk seen, or no body due.
    case complete
    /// Delimited by close, and the connection was closed in order.
    case closeDelimited
    /// The connection was closed in order before the message was whole.
    case truncated
    /// The connection was reset.
    case reset
    /// Nothing more came in time.
    case timedOut
    /// The reader gave up on purpose.
    case abandoned
    /// It was no HTTP response.
    case malformed(String)
}

/// A response as a client saw it.
package struct Response: Sendable {
    /// `HTTP/1.1`; empty if no head came.
    package var version = ""
    /// The status code; 0 if no head came.
    package var status = 0
    /// The field lines.
    package var fields = HeaderFields()
    /// Status codes of interim responses before it.
    package var interim: [Int] = []
    /// Their field lines.
    package var interimFields: [HeaderFields] = []
    /// The field lines behind the last chunk.
    package var trailers = HeaderFields()
    /// The body, or nil where the reader only compared it.
    package var body: [UInt8]?
    /// Bytes of body received.
    package var bodyByteCount = 0
    /// Whether the received body is a beginning of the expected image; true if none was expected.
    package var isAsExpected = true
    /// How it ended.
    package var ending: ResponseEnding = .abandoned

    /// Whether a client must take the response for whole.
    package var isWhole: Bool { ending == .complete || ending == .closeDelimited }

    /// The body as text.
    package var text: String { String(decoding: body ?? [], as: UTF8.self) }

    /// The body as a JSON object; nil if it is none.
    package var document: [String: Any]? {
        (try? JSONSerialization.jsonObject(with: Data(body ?? []))) as? [String: Any]
    }

    /// A field's first value.
    package subscript(name: String) -> String? { fields[name] }

    /// Whether it is whole, has that status, and its body is exactly that image.
    package func matches(_ image: TestImage, status wanted: Int = 200) -> Bool {
        guard isWhole, status == wanted, isAsExpected else { return false }
        guard let body else { return bodyByteCount == image.byteCount }
        return body == image.bytes
    }

    /// The parameters of the last member of `Cache-Status` (RFC 9211), for example `fwd`: `stale`.
    package var cacheStatus: [String: String] {
        guard let member = fields.all("Cache-Status").last else { return [:] }
        let parameters = Self.pieces(of: member).dropFirst().map { $0[...].trimmingWhitespace() }
        return parameters.reduce(into: [:]) { status, parameter in
            let parts = parameter.split(separator: "=", maxSplits: 1)
            status[String(parts[0])] = parts.count == 2 ? String(parts[1]) : ""
        }
    }

    /// What stands between the semicolons that are not in a quoted string.
    private static func pieces(of member: String) -> [String] {
        var pieces = [""]
        var isQuoted = false
        for character in member {
            if character == "\"" { isQuoted.toggle() }
            if character == ";", !isQuoted {
                pieces.append("")
            } else {
                pieces[pieces.count - 1].append(character)
            }
        }
        return pieces
    }

    /// Whether `Cache-Status` says that the cache answered by itself.
    package var isHit: Bool { cacheStatus["hit"] != nil }
}

extension Response: CustomStringConvertible {
    /// What it is in a line, without its body.
    package var description: String {
        let lines = fields.lines.map { "\($0.name): \($0.value)" }.joined(separator: ", ")
        let same = isAsExpected ? "" : ", not as expected"
        return "\(status) [\(lines)] \(bodyByteCount) bytes, \(ending)\(same)"
    }
}

/// One field line of a message, as text.
package struct HeaderField: Sendable, Equatable {
    /// The name as it was sent.
    package let name: String
    /// The value without the white space around it.
    package let value: String

    /// A field line of this name and value.
    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// The field lines of a message in the order they came, found by name without regard to case.
package struct HeaderFields: Sendable, Equatable {
    /// The lines in their order.
    package var lines: [HeaderField]

    /// A list of these lines.
    package init(_ lines: [HeaderField] = []) {
        self.lines = lines
    }

    /// The value of the first line of that name.
    package subscript(name: String) -> String? {
        all(name).first
    }

    /// The values of every line of that name.
    package func all(_ name: String) -> [String] {
        let wanted = name.lowercased()
        return lines.filter { $0.name.lowercased() == wanted }.map(\.value)
    }

    /// The members of a comma-separated list field, over all its lines.
    package func members(_ name: String) -> [String] {
        all(name).flatMap { $0.split(separator: ",") }.map {
            $0.trimmingWhitespace()
        }
    }

    /// Reads one `name: value` line; nil if it is none, or has space before its colon.
    static func parse(_ line: String) -> HeaderField? {
        guard let colon = line.firstIndex(of: ":"), colon > line.startIndex else { return nil }
        let name = line[..<colon]
        guard name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        let value = line[line.index(after: colon)...].trimmingWhitespace()
        return HeaderField(String(name), value)
    }
}

extension StringProtocol {
    /// The text without spaces and tabs at its ends.
    func trimmingWhitespace() -> String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        return String(String(drop(while: isSpace).reversed()).drop(while: isSpace).reversed())
    }
}
