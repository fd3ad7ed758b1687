package import HTTPRules

/// Reads the token file of the admin port: one `ROLE TOKEN` per line; a token alone has role admin.
package enum AdminTokenFile {
    /// A token in clear text with its role, before only its digest is kept.
    package struct Entry: Hashable, Sendable {
        /// The role that the token confers.
        package var role: AdminRole
        /// The bytes of the token.
        package var token: [UInt8]
    }

    /// The allowed format of a token file, in words for an operator.
    package static let allowedFormat =
        "1 to \(TokenFile.countMax) lines, each a role (read, purge or admin), a space, and a "
        + "token of \(TokenFile.tokenBytesMin) to \(TokenFile.tokenBytesMax) letters, digits and "
        + "-._~+/=; # begins a comment line"

    /// The reason why a token file is rejected; no content of the file is included.
    package enum ParseError: Error, Hashable, Sendable {
        case role(line: Int)
        case tokens(TokenFileFault)

        /// The reason as one clause, without a full stop.
        package var message: String {
            switch self {
            case .role(let line): "line \(line) does not begin with a role"
            case .tokens(let fault): fault.message
            }
        }
    }

    /// Returns the tokens in file order; empty lines and comments are skipped.
    package static func entries(of bytes: [UInt8]) throws(ParseError) -> [Entry] {
        var roles: [AdminRole] = []
        var rest: [UInt8] = []
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            if index > 0 { rest.append(UInt8(ascii: "\n")) }
            let isBlank = line.allSatisfy { $0 == UInt8(ascii: "\r") }
            guard !isBlank, line.first != UInt8(ascii: "#") else { continue }
            guard let space = line.firstIndex(of: UInt8(ascii: " ")) else {
                roles.append(.admin)
                rest += line
                continue
            }
            let word = String(decoding: line[..<space], as: UTF8.self)
            guard let role = AdminRole(rawValue: word) else { throw .role(line: index + 1) }
            roles.append(role)
            rest += line[space...].drop { $0 == UInt8(ascii: " ") }
        }
        do throws(TokenFileFault) {
            return zip(roles, try TokenFile.tokens(of: rest)).map(Entry.init)
        } catch {
            throw .tokens(error)
        }
    }
}
