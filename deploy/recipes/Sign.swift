// Signs URLs for a Nuthatch node, with CryptoKit on Apple's systems and swift-crypto elsewhere.
// An application must get signed URLs from its server: a key in an application is no secret.
//
//     NUTHATCH_SIGNING_KEY=<secret> sign image <node> <URL> [<expires>]
//     NUTHATCH_SIGNING_KEY=<secret> sign site <name of the site> <URL> [<expires>]
//
// The secret is the part after the colon of a line in the node's --signing-key-file; <expires> is
// the time until which the URL is valid, in seconds since 1970.

import Foundation

#if canImport(CryptoKit)
    import CryptoKit
#else
    import Crypto
#endif

struct URLSigner {
    let key: SymmetricKey

    init(secret: String) { key = SymmetricKey(data: Data(secret.utf8)) }

    struct Refused: Error { let reason: String }

    /// Returns the address at which `node` (http://HOST:PORT) serves the image at `url`.
    func image(_ url: String, at node: String, expires: Int? = nil) throws -> String {
        let target = try Self.normalised(url)
        let base = node.hasSuffix("/") ? String(node.dropLast()) : node
        // In canonical form it is ASCII, which can always be encoded.
        let value = target.addingPercentEncoding(withAllowedCharacters: Self.unreserved) ?? ""
        return "\(base)/v1/image?url=\(value)&\(parameters(target, expires))"
    }

    /// Returns a URL of the site `name` of the node's settings; path and query are signed
    /// unchanged.
    func url(_ url: String, ofSite name: String, expires: Int? = nil) throws -> String {
        guard url.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }),
            let start = url.range(of: "^https?://", options: .regularExpression)
        else { throw Refused(reason: "not percent-encoded, or with a fragment: \(url)") }
        let rest = url[start.upperBound...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        var host = name
        if name == "*" {
            host = rest[..<end].lowercased()
            if host.hasSuffix(":80") { host.removeLast(3) }
        }
        let path = (rest[end...].hasPrefix("/") ? "" : "/") + rest[end...]
        return url + (url.contains("?") ? "&" : "?") + parameters("//\(host)\(path)", expires)
    }

    private func parameters(_ target: String, _ expires: Int?) -> String {
        let until = expires.map(String.init) ?? ""
        let text = Data("nuthatch-signed-url-v1\n\(target)\n\(until)".utf8)
        let code = Data(HMAC<SHA256>.authenticationCode(for: text, using: key))
        let signature = code.base64EncodedString()
            .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
        return (until.isEmpty ? "" : "expires=\(until)&") + "signature=\(signature)"
    }

    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-")

    /// Returns the normalised URL under which the node stores the image.
    static func normalised(_ url: String) throws -> String {
        let form = #"^(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(#[\s\S]*)?$"#
        let bytes = Array(url.utf8)
        guard let parts = groups(form, in: url), bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { throw Refused(reason: "not an absolute http or https URL: \(url)") }
        let scheme = parts[0].lowercased()
        let authority = try authority(parts[1].lowercased(), scheme)
        return try "\(scheme)://\(authority)\(path(parts[2]))\(escaped(parts[3]))"
    }

    private static func groups(_ form: String, in text: String) -> [String]? {
        let all = NSRange(text.startIndex..., in: text)
        guard
            let expression = try? NSRegularExpression(pattern: form, options: [.caseInsensitive]),
            let match = expression.firstMatch(in: text, range: all)
        else { return nil }
        return (1..<match.numberOfRanges).map { index in
            Range(match.range(at: index), in: text).map { String(text[$0]) } ?? ""
        }
    }

    private static func authority(_ text: String, _ scheme: String) throws -> String {
        let form = #"^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]*))?$"#
        guard let parts = groups(form, in: text) else {
            throw Refused(reason: "no host, or not in ASCII: \(text)")
        }
        var host = parts[0]
        if host.hasSuffix(".") { host.removeLast() }
        if host.hasPrefix("[") { host = "[\(try shortened(String(host.dropFirst().dropLast())))]" }
        let port = Int("0" + parts[1]) ?? 0
        return port == 0 || port == (scheme == "http" ? 80 : 443) ? host : "\(host):\(port)"
    }

    /// Returns an IPv6 address as RFC 5952 writes it.
    private static func shortened(_ address: String) throws -> String {
        var bytes = in6_addr()
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_pton(AF_INET6, address, &bytes) == 1,
            inet_ntop(AF_INET6, &bytes, &text, socklen_t(text.count)) != nil
        else { throw Refused(reason: "no IPv6 address: \(address)") }
        return String(cString: text)
    }

    /// Decodes unreserved characters, and percent-encodes characters that a URL cannot have.
    private static func escaped(_ text: String) throws -> String {
        let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-".utf8)
        let legal = plain.union("!$&'()*+,;=:@/?".utf8)
        var result = ""
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            var code = byte
            var mayStand = legal
            if byte == UInt8(ascii: "%") {
                let digits = String(decoding: rest.prefix(2), as: UTF8.self)
                guard digits.allSatisfy(\.isHexDigit), digits.utf8.count == 2,
                    let value = UInt8(digits, radix: 16)
                else { throw Refused(reason: "% must be followed by two hexadecimal digits") }
                (code, mayStand) = (value, plain)
                rest = rest.dropFirst(2)
            }
            result +=
                mayStand.contains(code)
                ? String(UnicodeScalar(code)) : String(format: "%%%02X", code)
        }
        return result
    }

    /// Normalises the escapes and removes dot segments (RFC 3986 section 5.2.4).
    private static func path(_ path: String) throws -> String {
        let segments = try escaped(path).dropFirst().split(
            separator: "/", omittingEmptySubsequences: false)
        var kept: [Substring] = []
        for segment in segments {
            if segment == ".." {
                _ = kept.popLast()
            } else if segment != "." {
                kept.append(segment)
            }
        }
        if let last = segments.last, last == "." || last == ".." { kept.append("") }
        return "/" + kept.joined(separator: "/")
    }
}

@main
enum Program {
    static func main() {
        let words = CommandLine.arguments.dropFirst()
        let secret = ProcessInfo.processInfo.environment["NUTHATCH_SIGNING_KEY"] ?? ""
        let signer = URLSigner(secret: secret)
        let expires = words.count == 4 ? Int(words[4]) : nil
        do {
            switch words.first {
            case "image": print(try signer.image(words[3], at: words[2], expires: expires))
            case "site": print(try signer.url(words[3], ofSite: words[2], expires: expires))
            default: throw URLSigner.Refused(reason: "image NODE URL [EXPIRES] | site NAME URL …")
            }
        } catch {
            FileHandle.standardError.write(Data("\(error)\n".utf8))
            exit(1)
        }
    }
}
