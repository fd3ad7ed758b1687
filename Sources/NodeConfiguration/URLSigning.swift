import FoundationEssentials
package import Ground
import HTTPRules
import Telemetry
import Wire

/// Signer of URLs that a node with the same key file accepts.
package struct URLSigning: Sendable {
    /// The kind of URL that is signed, and the form of the result.
    package enum Form: Hashable, Sendable {
        /// A URL of an image, to be fetched through the API of the node at the base address; an
        /// empty base gives the target alone.
        case image(base: String)
        /// A URL of the site with this name, as in the node's settings.
        case site(String)
    }

    /// The reason why a URL cannot be signed.
    package struct Fault: Error, Hashable, CustomStringConvertible {
        /// The reason as one clause for the operator.
        package let description: String
    }

    private let signer: URLSigner

    /// Creates a signer with the first key of a file.
    ///
    /// - Parameter keyFile: the path of the file.
    ///
    /// - Throws: the reason why the file cannot be used.
    package init(keyFile: String) throws(ConfigurationError) {
        signer = URLSigner(try ConfigurationSources.signingKeys(keyFile))
    }

    /// The path of the key file in the environment variable that `serve` reads; `nil` if it is not
    /// set.
    package static var keyFileOfEnvironment: String? {
        ProcessInfo.processInfo.environment[Setting.node.signingKeyFile.setting.environmentName]
            .flatMap { $0.isEmpty ? nil : $0 }
    }

    // MARK: Times

    /// Parses an expiry in whole seconds since 1970.
    ///
    /// - Throws: the fault of a text that is not a number from 1 to the latest time that fits.
    package static func expiry(at text: String) throws(Fault) -> WallTime {
        let bytes = Array(text.utf8)
        guard let time = SignedTarget.time(bytes.span, at: 0..<bytes.count) else {
            throw Fault(
                description: "\(text.quoted(limit: 80)) is not a time; allowed: 1 to "
                    + "\(SignedTarget.expiryMax.seconds), seconds since 1970")
        }
        return time
    }

    /// Parses a duration and returns the time that is so far from `now`, rounded up to whole
    /// seconds.
    ///
    /// - Throws: the fault of a text that is not a duration, of zero, or of a time beyond the
    ///   latest one.
    package static func expiry(in text: String, now: WallTime) throws(Fault) -> WallTime {
        guard let interval = DurationText.parse(text), interval > .zero,
            interval.seconds < SignedTarget.expiryMax.seconds - now.seconds
        else {
            throw Fault(
                description: "\(text.quoted(limit: 80)) is not a duration; allowed: a number with "
                    + "\(DurationText.unitNames.joined(separator: ", ")), e.g. 1h")
        }
        let isWhole = interval == .seconds(interval.seconds)
        return WallTime(seconds: now.seconds + interval.seconds + (isWhole ? 0 : 1))
    }

    // MARK: URLs

    /// Returns `url` with its signature and expiry.
    ///
    /// - Parameters:
    ///   - url: the URL; for a named site, also a path alone.
    ///   - form: the kind of URL.
    ///   - expiry: the time until which it is accepted; `nil` for no limit.
    ///
    /// - Returns: the URL to request.
    /// - Throws: the fault of `url` or of `form`.
    package func sign(_ url: String, as form: Form, expiry: WallTime?) throws(Fault) -> String {
        switch form {
        case .image(let base): try signImage(url, base: base, expiry: expiry)
        case .site(let name): try signSite(url, name: name, expiry: expiry)
        }
    }

    /// Signs an image's URL for the node at `base`.
    private func signImage(
        _ url: String, base: String, expiry: WallTime?
    ) throws(Fault) -> String {
        guard base.isEmpty || Self.isBase(base) else {
            throw Fault(
                description: "\(base.quoted(limit: 200)) is not a node's address; "
                    + "e.g. http://127.0.0.1:8080")
        }
        let bytes = Array(url.utf8)
        var text: [UInt8] = []
        let result = CacheKey.normalise(
            url: bytes.span, at: 0..<bytes.count, into: &text, bytesMax: Self.urlBytesMax)
        if case .refused(let refusal) = result {
            throw Fault(description: "\(url.quoted(limit: 200)): \(refusal.message)")
        }
        var signed = Array((base.hasSuffix("/") ? String(base.dropLast()) : base).utf8)
        signed += Array("/v1/image?url=".utf8)
        signed += PercentEncoding.encoded(text)
        return finish(&text, &signed, expiry)
    }

    /// The longest URL in bytes, more than any node accepts.
    private static let urlBytesMax = 64 << 10

    /// Returns true for an address of a node.
    private static func isBase(_ text: String) -> Bool {
        (text.hasPrefix("http://") || text.hasPrefix("https://")) && isTarget(text[...])
            && !text.contains("?")
    }

    /// Returns true for visible ASCII without a fragment, which clients do not send.
    private static func isTarget(_ text: Substring) -> Bool {
        text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
    }

    /// Signs a URL of a site.
    ///
    /// - Throws: the fault of a name or URL that is malformed, or of a URL that already has a
    ///   parameter `expires` or `signature`.
    private func signSite(
        _ url: String, name: String, expiry: WallTime?
    ) throws(Fault) -> String {
        guard let pattern = SitePattern(name) else {
            throw Fault(
                description: "\(name.quoted(limit: 200)) is not a site's name; "
                    + "allowed: *, HOST or HOST:PORT")
        }
        let (authority, target) = try Self.parts(url, of: pattern)
        let bytes = Array((authority + target).utf8)
        let count = authority.utf8.count
        var text: [UInt8] = []
        guard
            SiteKey.append(
                pattern, host: 0..<count, in: bytes.span, path: count..<bytes.count,
                of: bytes.span, to: &text)
        else {
            throw Fault(description: "\(url.quoted(limit: 200)) has no host")
        }
        var signed = Array(url.utf8)
        let made = finish(&text, &signed, expiry)
        // A target with such a parameter of its own would be parsed differently.
        let whole = Array(made.utf8)
        guard case .signed = SignedTarget.parse(whole.span, at: 0..<whole.count),
            !Self.isNamed("expires", in: target)
        else {
            throw Fault(
                description: "\(url.quoted(limit: 200)) has a parameter expires or signature")
        }
        return made
    }

    /// Returns true if the query of `target` has a parameter `name`.
    private static func isNamed(_ name: String, in target: Substring) -> Bool {
        guard let mark = target.firstIndex(of: "?") else { return false }
        return target[target.index(after: mark)...].split(separator: "&").contains {
            $0 == name || $0.hasPrefix(name + "=")
        }
    }

    /// Splits a URL into its authority, without the scheme's default port, and its path and query;
    /// a path alone has an empty authority and belongs to its site's host.
    private static func parts(
        _ url: String, of pattern: SitePattern
    ) throws(Fault) -> (authority: Substring, target: Substring) {
        guard isTarget(url[...]) else {
            throw Fault(
                description: "\(url.quoted(limit: 200)) has characters to percent-encode, or a "
                    + "fragment")
        }
        if url.hasPrefix("/"), pattern != .catchAll { return ("", url[...]) }
        let rest: Substring
        let defaultPort: String
        if url.hasPrefix("http://") {
            (rest, defaultPort) = (url.dropFirst(7), ":80")
        } else if url.hasPrefix("https://") {
            (rest, defaultPort) = (url.dropFirst(8), ":443")
        } else {
            throw Fault(
                description: "\(url.quoted(limit: 200)) is not a URL; allowed: http://… or "
                    + "https://…"
                    + (pattern == .catchAll ? "" : ", or /…"))
        }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        var authority = rest[..<end]
        // Clients omit the default port of the scheme.
        if authority.hasSuffix(defaultPort) { authority = authority.dropLast(defaultPort.count) }
        guard !authority.isEmpty else {
            throw Fault(description: "\(url.quoted(limit: 200)) has no host")
        }
        return (authority, rest[end...])
    }

    /// Appends the expiry and the first key's signature of the target in `text` to `signed`, and
    /// returns that.
    private func finish(
        _ text: inout [UInt8], _ signed: inout [UInt8], _ expiry: WallTime?
    ) -> String {
        _ = SignatureBase.makeSignedText(&text, expiry: expiry)
        SignatureBase.append(signer.sign(text.span), expiry: expiry, to: &signed)
        return String(decoding: signed, as: UTF8.self)
    }
}
