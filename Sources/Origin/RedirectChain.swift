import Ground
package import HTTPRules

/// The redirects of one fetch: where the next leads, and whether it is followed.
package struct RedirectChain: Hashable, Sendable {
    /// What becomes of an answer.
    package enum Step: Hashable, Sendable {
        /// It is no redirect that is followed.
        case final
        /// Ask for this URL, a canonical key.
        case follow([UInt8])
        case fail(OriginFailure)
    }

    /// The canonical keys that were asked for, in order; never empty.
    package private(set) var urls: [[UInt8]]
    private let followedMax: Int

    /// A chain that begins at a canonical key; of 0 redirects at most, none is followed.
    package init(from url: [UInt8], followedMax: Int) {
        urls = [url]
        self.followedMax = followedMax
    }

    /// The URL asked for now.
    package var url: [UInt8] { urls[urls.count - 1] }
    /// True once a redirect was followed.
    package var isRedirected: Bool { urls.count > 1 }

    /// An answer came to the URL asked for now.
    package mutating func responseReceived(_ head: ResponseHead) -> Step {
        guard followedMax > 0, Self.redirectStatuses.contains(head.status),
            let location = head.first(.location)
        else { return .final }
        guard urls.count <= followedMax else { return .fail(.tooManyRedirects(max: followedMax)) }
        var next: [UInt8] = []
        switch RedirectTarget.resolve(
            Array(head.bytes[location.range]), against: url, into: &next)
        {
        case .refused(let refusal): return .fail(.redirectRefused(refusal))
        case .normalised: break
        }
        guard !urls.contains(next) else { return .fail(.redirectLoop) }
        urls.append(next)
        return .follow(next)
    }

    /// Those by which a GET is repeated elsewhere (RFC 9110 §15.4); 300 and 305 are not.
    private static let redirectStatuses: Set<UInt16> = [301, 302, 303, 307, 308]
}
