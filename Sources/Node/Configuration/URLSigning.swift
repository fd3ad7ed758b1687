import FoundationEssentials
package import Ground
import HTTPRules
import Telemetry
import Wire

/// Signs URLs the way a node with the same file of keys accepts them.
package struct URLSigning: Sendable {
    /// What is signed, and how it is written.
    package enum Form: Hashable, Sendable {
        /// URLs of images, for the API of the node at this address; empty for the target alone.
        case image(base: String)
        /// URLs of the site with this name, as the node's settings have it.
        case site(String)
    }

    /// Why something cannot be signed; one clause for the operator.
    package struct Fault: Error, Hashable, CustomStringConvertible {
        package let description: String
    }

    private let signer: URLSigner

    /// Reads the file; its first key signs.
    ///
    /// - Throws: why the file is of no use.
    package init(keyFile: String) throws(ConfigurationError) {
        signer = URLSigner(try ConfigurationSources.signingKeys(keyFile))
    }

    /// The file that the environment names, as it does for `serve`; nil if it names none.
    package static var keyFileOfEnvironment: String? {
        ProcessInfo.processInfo.environment[SettingName.signingKeyFile.environmentName]
            .flatMap { $0.isEmpty ? nil : $0 }
    }

    // MARK: Times

    /// The time that an operator gives in seconds since 1970.
    package static func expiry(at text: String) throws(Fault) -> WallTime {
        let bytes = Array(text.utf8)
        guard let time = SignedTarget.time(bytes.span, at: 0..<bytes.count) else {
            throw Fault(
                description: "\(text.quoted(limit: 80)) is not a time; allowed: 1 to "
                    + "\(SignedTarget.expiryMax.seconds), seconds since 1970")
        }
        return time
    }

    /// The time that is so long from now, a part of a second being a whole one.
    package static func expiry(in text: String) throws(Fault) -> WallTime {
        let now = SystemClock.wallTime()
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

    /// `url` as it is to be asked for, good until `expiry` or for ever.
    ///
    /// - Throws: what is wrong with `url` or with the form.
    package func sign(_ url: String, as form: Form, expiry: WallTime?) throws(Fault) -> String {
        switch form {
        case .image(let base): try signImage(url, base: base, expiry: expiry)
        case .site(let name): try signSite(url, name: name, expiry: expiry)
        }
    }

    private func signImage(
        _ url: String, base: String, expiry: WallTime?
    ) throws(Fault) -> String {
        guard base.isEmpty || Self.isBase(base) else {
            throw Fault(
                description: "\(base.quoted(limit: 200)) is no address of a node; "
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
        for byte in text { Self.appendEncoded(byte, to: &signed) }
        return finish(&text, &signed, expiry)
    }

    /// More than any node takes.
    private static let urlBytesMax = 64 << 10

    private static func isBase(_ text: String) -> Bool {
        (text.hasPrefix("http://") || text.hasPrefix("https://")) && isTarget(text[...])
            && !text.contains("?")
    }

    /// True for visible ASCII without what begins a fragment, which clients do not send.
    private static func isTarget(_ text: Substring) -> Bool {
        text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
    }

    private static func appendEncoded(_ byte: UInt8, to bytes: inout [UInt8]) {
        let isUnreserved =
            ASCII.isLetter(byte) || ASCII.isDigit(byte) || "-._~".utf8.contains(byte)
        guard !isUnreserved else { return bytes.append(byte) }
        let digits = Array("0123456789ABCDEF".utf8)
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }

    private func signSite(
        _ url: String, name: String, expiry: WallTime?
    ) throws(Fault) -> String {
        guard let pattern = SitePattern(name) else {
            throw Fault(
                description: "\(name.quoted(limit: 200)) is no name of a site; "
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
        // What has such a parameter of its own would not be read as it was meant.
        let whole = Array(made.utf8)
        guard case .signed = SignedTarget.parse(whole.span, at: 0..<whole.count),
            !Self.isNamed("expires", in: target)
        else {
            throw Fault(
                description: "\(url.quoted(limit: 200)) has a parameter expires or signature")
        }
        return made
    }

    private static func isNamed(_ name: String, in target: Substring) -> Bool {
        guard let mark = target.firstIndex(of: "?") else { return false }
        return target[target.index(after: mark)...].split(separator: "&").contains {
            $0 == name || $0.hasPrefix(name + "=")
        }
    }

    /// The authority, and path and query; a path alone has the authority of its site's name.
    private static func parts(
        _ url: String, of pattern: SitePattern
    ) throws(Fault) -> (authority: Substring, target: Substring) {
        guard isTarget(url[...]) else {
            throw Fault(
                description: "\(url.quoted(limit: 200)) holds what is to be percent-encoded, or a "
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
                description: "\(url.quoted(limit: 200)) is no URL; allowed: http://… or https://…"
                    + (pattern == .catchAll ? "" : ", or /…"))
        }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        var authority = rest[..<end]
        // Clients do not send the port that their scheme has anyway.
        if authority.hasSuffix(defaultPort) { authority = authority.dropLast(defaultPort.count) }
        guard !authority.isEmpty else {
            throw Fault(description: "\(url.quoted(limit: 200)) has no host")
        }
        return (authority, rest[end...])
    }

    /// Appends to `signed` what the first key makes of the target in `text`.
    private func finish(
        _ text: inout [UInt8], _ signed: inout [UInt8], _ expiry: WallTime?
    ) -> String {
        _ = SignatureBase.makeBase(&text, expiry: expiry)
        SignatureBase.append(signer.sign(text.span), expiry: expiry, to: &signed)
        return String(decoding: signed, as: UTF8.self)
    }
}
