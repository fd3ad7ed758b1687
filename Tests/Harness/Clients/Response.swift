import Foundation

/// How the reading of a response ended.
package enum ResponseEnding: Sendable, Equatable {
    /// The end given by the framing: length reached, last chunk read, or no body due.
    case complete
    /// A body delimited by the close of the connection, which was orderly.
    case closeDelimited
    /// An orderly close before the message was complete.
    case truncated
    /// A reset of the connection.
    case reset
    /// No further byte in time.
    case timedOut
    /// A deliberate stop by the reader.
    case abandoned
    /// Bytes that are no HTTP response.
    case malformed(String)
}

/// A response as a client received it.
package struct Response: Sendable {
    /// The version, such as `HTTP/1.1`; empty if no head arrived.
    package var version = ""
    /// The status code; 0 if no head arrived.
    package var status = 0
    /// The field lines.
    package var fields = HeaderFields()
    /// Status codes of the preceding interim responses.
    package var interim: [Int] = []
    /// Field lines of the preceding interim responses.
    package var interimFields: [HeaderFields] = []
    /// The field lines of the trailer section.
    package var trailers = HeaderFields()
    /// The body; `nil` where the reader only compared it.
    package var body: [UInt8]?
    /// Number of body bytes received.
    package var bodyByteCount = 0
    /// True if the received body is a prefix of the expected image, or none was expected.
    package var isAsExpected = true
    /// How the response ended.
    package var ending: ResponseEnding = .abandoned

    /// True if a client must accept the response as complete.
    package var isWhole: Bool { ending == .complete || ending == .closeDelimited }

    /// The body as text.
    package var text: String { String(decoding: body ?? [], as: UTF8.self) }

    /// The body as a JSON object; `nil` if it is none.
    package var document: [String: Any]? {
        (try? JSONSerialization.jsonObject(with: Data(body ?? []))) as? [String: Any]
    }

    /// The first value of a field.
    package subscript(name: String) -> String? { fields[name] }

    /// True if the response is complete and has that status and exactly that image as its body.
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

    /// Splits a member at the semicolons outside quoted strings.
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

    /// True if `Cache-Status` reports a hit.
    package var isHit: Bool { cacheStatus["hit"] != nil }
}

extension Response: CustomStringConvertible {
    /// A one-line summary without the body.
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
    /// The value without surrounding white space.
    package let value: String

    /// Creates a field line from its name and value.
    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// The field lines of a message in order, looked up by name without regard to case.
package struct HeaderFields: Sendable, Equatable {
    /// The field lines in order.
    package var lines: [HeaderField]

    /// Creates a list of field lines.
    package init(_ lines: [HeaderField] = []) {
        self.lines = lines
    }

    /// The value of the first line with that name.
    package subscript(name: String) -> String? {
        all(name).first
    }

    /// Returns the values of all lines with that name.
    package func all(_ name: String) -> [String] {
        let wanted = name.lowercased()
        return lines.filter { $0.name.lowercased() == wanted }.map(\.value)
    }

    /// Returns the members of a comma-separated list field, over all its lines.
    package func members(_ name: String) -> [String] {
        all(name).flatMap { $0.split(separator: ",") }.map {
            $0.trimmingWhitespace()
        }
    }

    /// Parses a `name: value` line; `nil` if it is invalid or has white space before the colon.
    static func parse(_ line: String) -> HeaderField? {
        guard let colon = line.firstIndex(of: ":"), colon > line.startIndex else { return nil }
        let name = line[..<colon]
        guard name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        let value = line[line.index(after: colon)...].trimmingWhitespace()
        return HeaderField(String(name), value)
    }
}

extension StringProtocol {
    /// Returns the text without leading and trailing spaces and tabs.
    func trimmingWhitespace() -> String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        return String(String(drop(while: isSpace).reversed()).drop(while: isSpace).reversed())
    }
}
