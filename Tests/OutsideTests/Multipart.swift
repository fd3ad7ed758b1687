import Harness

/// A parser of `multipart/byteranges` bodies (RFC 9110 §14.6).
enum Multipart {
    struct Part {
        let fields: HeaderFields
        let body: [UInt8]
    }

    /// The error for a body that does not consist of parts.
    struct Malformed: Error {
        let what: String
    }

    static func parts(of response: Response) throws -> [Part] {
        let type = response["Content-Type"] ?? ""
        let prefix = "multipart/byteranges; boundary="
        guard type.lowercased().hasPrefix(prefix) else { throw Malformed(what: type) }
        let boundary = type.dropFirst(prefix.count).filter { $0 != "\"" }
        let body = response.body ?? []
        let delimiter = Array("\r\n--\(boundary)".utf8)
        let pieces = split(Array("\r\n".utf8) + body, by: delimiter)
        guard pieces.count >= 3, let last = pieces.last, last.starts(with: Array("--".utf8))
        else { throw Malformed(what: "\(pieces.count) pieces") }
        return try pieces.dropFirst().dropLast().map(part)
    }

    private static func part(_ piece: [UInt8]) throws -> Part {
        let halves = split(piece, by: Array("\r\n\r\n".utf8))
        guard let head = halves.first, halves.count >= 2 else { throw Malformed(what: "a part") }
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n").map { line in
            let colon = line.firstIndex(of: ":") ?? line.endIndex
            let value = line[colon...].drop { $0 == ":" || $0 == " " }
            return HeaderField(String(line[..<colon]), String(value))
        }
        return Part(fields: HeaderFields(lines), body: Array(piece[(head.count + 4)...]))
    }

    private static func split(_ bytes: [UInt8], by delimiter: [UInt8]) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var start = 0
        var at = 0
        while at + delimiter.count <= bytes.count {
            if bytes[at] == delimiter[0], bytes[at..<at + delimiter.count] == delimiter[...] {
                pieces.append(Array(bytes[start..<at]))
                at += delimiter.count
                start = at
            } else {
                at += 1
            }
        }
        return pieces + [Array(bytes[start...])]
    }
}
