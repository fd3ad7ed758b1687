import Ground
import HTTPRules
import Testing

@Suite("Permission to use PURGE")
struct PurgePermissionTests {
    private static let token = TokenDigest([UInt8](repeating: 7, count: 32).span)

    private func digest(changing byte: Int) -> TokenDigest {
        var bytes = [UInt8](repeating: 7, count: 32)
        bytes[byte] ^= 1
        return TokenDigest(bytes.span)
    }

    private func address(_ text: String) throws -> IPAddress {
        try #require(IPAddress(text[...]))
    }

    @Test("If no client has permission, the method is not supported")
    func nobody() throws {
        let permission = PurgePermission()
        #expect(permission.decision(on: try address("127.0.0.1"), token: nil) == .notConfigured)
        #expect(
            permission.decision(on: try address("127.0.0.1"), token: Self.token) == .notConfigured)
    }

    @Test("An address in a network has permission, without a token and with a wrong one")
    func networks() throws {
        let permission = PurgePermission(
            networks: [try Network(parsing: "10.1.0.0/16"), try Network(parsing: "::1")])
        for text in ["10.1.255.3", "::1", "::ffff:10.1.2.3"] {
            #expect(permission.decision(on: try address(text), token: nil) == .allowed)
            #expect(permission.decision(on: try address(text), token: Self.token) == .allowed)
        }
        for text in ["10.2.0.1", "::2", "127.0.0.1"] {
            let outcome = permission.decision(on: try address(text), token: Self.token)
            guard case .refused(let refusal) = outcome else {
                Issue.record("\(text): \(outcome)")
                continue
            }
            #expect(refusal.allowsNetworks && !refusal.allowsTokens)
        }
        guard case .refused = permission.decision(on: nil, token: nil) else {
            Issue.record("an address was allowed without a network")
            return
        }
    }

    @Test("A token has permission from any address, and every byte of its digest counts")
    func tokens() throws {
        let other = TokenDigest([UInt8](repeating: 1, count: 32).span)
        for tokens in [[Self.token], [Self.token, other], [other, Self.token]] {
            let permission = PurgePermission(tokens: tokens)
            #expect(permission.decision(on: nil, token: Self.token) == .allowed)
            for byte in 0..<32 {
                #expect(permission.decision(on: nil, token: digest(changing: byte)) != .allowed)
            }
            #expect(permission.decision(on: try address("127.0.0.1"), token: nil) != .allowed)
        }
    }

    @Test("A refusal says what would be allowed")
    func sentences() throws {
        let network = try Network(parsing: "10.0.0.0/8")
        let client = try address("192.0.2.1")
        for (permission, token, part) in [
            (PurgePermission(networks: [network]), nil, "192.0.2.1 without a bearer token"),
            (PurgePermission(networks: [network]), Self.token, "with an unknown token"),
            (PurgePermission(tokens: [digest(changing: 1)]), nil, "Required: Authorization:"),
            (PurgePermission(networks: [network]), nil, "Required: an address in one of"),
            (
                PurgePermission(networks: [network], tokens: [digest(changing: 1)]), nil,
                "networks, or Authorization: Bearer"
            ),
        ] {
            guard case .refused(let refusal) = permission.decision(on: client, token: token) else {
                Issue.record("allowed: \(permission)")
                continue
            }
            let problem = ProblemDocument(refusal)
            let wantsToken = !permission.tokens.isEmpty && token == nil
            #expect(problem.status == (wantsToken ? 401 : 403))
            #expect(problem.name == "purge-not-allowed")
            #expect(problem.detail.contains(part), "\(problem.detail)")
            #expect(!problem.detail.contains("10.0.0.0"), "networks are not disclosed")
        }
        #expect(ProblemDocument.purgeNotConfigured.status == 405)
    }

    @Test("The token of a request is in its only Authorization field")
    func bearer() {
        func token(_ fields: String...) -> String? {
            let head = ResponseHead(status: 200, fields: fields)
            return BearerToken.token(head.lines, in: head.bytes.span)?.text
        }
        #expect(token("Authorization: Bearer abcdef0123456789") == "abcdef0123456789")
        #expect(token("authorization: BEARER   a.b-c_d~e+f/g==") == "a.b-c_d~e+f/g==")
        #expect(token() == nil)
        for value in ["Basic YTpi", "Bearer", "Bearer ", "Bearer a b", "Bearer a,b", "Bearera"] {
            #expect(token("Authorization: \(value)") == nil, "\(value)")
        }
        #expect(token("Authorization: Bearer a", "Authorization: Bearer a") == nil)
        #expect(token("Authorization: Bearer \(String(repeating: "a", count: 513))") == nil)
    }

    @Test("A token file has a token on each line")
    func file() throws {
        let first = "0123456789abcdef"
        #expect(
            try TokenFile.tokens(of: "# one\n\(first)\r\n\n\(first)2".bytes).map(\.text)
                == [first, first + "2"])
        for (text, fault) in [
            ("", .noTokens), ("# none\n", .noTokens),
            ("0123456789abcde", .length(line: 1, count: 15)),
            (String(repeating: "a", count: 513), .length(line: 1, count: 513)),
            ("\n\(first) x", .byte(line: 2)), ("\(first)\n\(first)", .repeated(line: 2)),
            ((10..<27).map { "\(first)\($0)" }.joined(separator: "\n"), .tooMany(17)),
        ] as [(String, TokenFileFault)] {
            #expect(throws: fault) { try TokenFile.tokens(of: text.bytes) }
        }
    }
}
