import Admin
import Cluster
import Ground
import HTTPRules
import Origin
import Telemetry
import Wire

/// An error response: an RFC 9457 problem document and the fields that accompany it.
struct Problem: Hashable, Sendable {
    /// The problem document.
    var document: ProblemDocument
    /// Seconds for Retry-After; `nil` if a retry will not help.
    var retryAfterSeconds: Int?
    /// Metric that counts the problem; `nil` for none.
    var counter: Metric?
    /// Status of the origin's response; `nil` if the problem is another one.
    var originStatus: UInt16?
    /// Value of Allow for 405 (RFC 9110 §15.5.6); `nil` without the field.
    var allowedMethods: String?
    /// True if the connection must close: the request's framing is not reliable, or its rest is not
    /// read.
    var closesConnection = false

    /// Status of the response.
    var status: UInt16 { document.status }

    init(
        _ status: UInt16, _ name: String, _ title: String, _ detail: String,
        retryAfterSeconds: Int? = nil, closes: Bool = false
    ) {
        document = ProblemDocument(
            status: status, name: name, title: title, detail: detail)
        self.retryAfterSeconds = retryAfterSeconds
        self.closesConnection = closes
    }

    /// Creates a problem from a document, without further fields.
    init(_ document: ProblemDocument) {
        self.document = document
    }

    /// Returns the head of the response as stored with a body of `bodyBytes` bytes.
    func storedHead(bodyBytes: UInt64) -> StoredHead {
        var head = ResponseHead(status: status, bytes: [], lines: [])
        let type = Array(ProblemDocument.contentType.description.utf8)
        head.appendField(.contentType, "Content-Type", type)
        head.appendField(.other, "X-Content-Type-Options", Array("nosniff".utf8))
        head.appendField(.cacheControl, "Cache-Control", Array("no-store".utf8))
        return StoredHead(head, size: bodyBytes)
    }

    // MARK: Client errors

    /// Returns the problem of a malformed request head; the connection closes.
    static func malformed(_ refusal: RequestParseError) -> Problem {
        Problem(
            refusal.status, "malformed-request", "The request is not valid HTTP",
            refusal.message, closes: true)
    }

    /// Returns the problem of a malformed request body; the connection closes.
    static func malformedBody(_ refusal: BodyDecodingError) -> Problem {
        Problem(
            refusal.status, "malformed-request", "The request's body is not valid HTTP",
            refusal.message, closes: true)
    }

    /// Returns the problem of a late head or body, as named by `what`; the connection closes.
    static func requestTimeout(_ what: String, seconds: Int64) -> Problem {
        Problem(
            408, "request-timeout", "The request took too long",
            "The request's \(what) did not arrive within \(seconds) s.", closes: true)
    }

    /// Returns the problem of a request body above the limit in bytes; the connection closes.
    static func bodyTooLarge(bytesMax: UInt64) -> Problem {
        Problem(
            413, "body-too-large", "The request's body is too large",
            "The body of a request may have at most \(bytesMax) bytes.", closes: true)
    }

    /// Returns the problem of an invalid target of an image API request.
    static func invalidTarget(_ refusal: ImageTargetRefusal, in bytes: Span<UInt8>) -> Problem {
        Problem(ProblemDocument(refusal, in: bytes))
    }

    /// Returns the problem of an invalid image URL.
    static func invalidURL(_ refusal: URLRefusal) -> Problem {
        Problem(ProblemDocument(refusal))
    }

    /// Returns the problem of a missing, malformed, forged or expired signature.
    static func invalidSignature(_ refusal: SignatureRefusal) -> Problem {
        var problem = Problem(ProblemDocument(refusal))
        problem.counter =
            switch refusal {
            case .unsigned: .signaturesMissing
            case .malformed: .signaturesMalformed
            case .forged: .signaturesForged
            case .expired: .signaturesExpired
            }
        return problem
    }

    /// Problem of a path that the data port does not serve.
    static let notFound = Problem(
        404, "not-found", "Not found", "Images are at /v1/image?url=…")

    /// Problem of a requested host without a site.
    static let siteUnknown = Problem(
        404, "site-unknown", "No site has this host",
        "No site of this node matches the Host of the request, and images are not served "
            + "by their URLs.")

    /// Problem of a path that, without dot segments, lies above the path of the site's origin.
    static let pathOutsideSite = Problem(
        400, "outside-site", "The path is outside the site",
        "Without its dot segments it is above the site's origin; the origin was not contacted.")

    /// Problem of a path that the admin port does not serve.
    static let adminNotFound = Problem(
        404, "not-found", "Not found",
        "The admin port describes itself at \(AdminOperation.operation(.getOpenAPI).path).")

    /// Problem of an unknown member ID.
    static let memberUnknown = Problem(
        404, "member-unknown", "Unknown member",
        "Member IDs are 32 hexadecimal digits, as listed at "
            + "\(AdminOperation.operation(.listMembers).path). Nothing was done.")

    /// Problem of a bootstrap in or near an existing cluster, or without a configured one.
    static let notBootstrapped = Problem(
        409, "not-bootstrapped", "No cluster was formed",
        "The node is in a cluster already, can reach one, or is not configured for one.")

    /// Problem of a recovery that is not required or not possible.
    static let notRecovered = Problem(
        409, "not-recovered", "There is nothing to recover",
        "The node is proven current, or knows no voter set: then bootstrap forms a cluster.")

    /// Returns the problem of a URL without stored responses; it still names the owners.
    static func entryUnknown(_ document: EntryDocument) -> Problem {
        let owners = document.owners.joined(separator: ", ")
        var problem = Problem(
            404, "entry-unknown", "Not stored on this node",
            "Neither memory nor disk of this node has it. Owners are \(owners).")
        problem.document.list = ProblemDocument.List("owners", document.owners)
        return problem
    }

    /// Problem of a stored body that does not exist or is too large to be sent.
    static let entryBodyUnknown = Problem(
        404, "entry-unknown", "Not stored on this node",
        "Neither memory nor disk of this node has the variant, or its body is too large to be "
            + "shown.")

    /// Problem of an unknown prefetch name.
    static let prefetchUnknown = Problem(
        404, "prefetch-unknown", "Unknown prefetch",
        "The latest are at \(AdminOperation.operation(.listPrefetches).path). Nothing was done.")

    /// Problem of a prefetch beyond the limit of running ones.
    static let prefetchesTooMany = Problem(
        503, PrefetchRequest.tooManyProblem, "Too many prefetches are running",
        "\(PrefetchJobTable.runningMax) are running; wait for one to end, or cancel one. "
            + "Nothing was done.",
        retryAfterSeconds: 5)

    /// Problem of an operation on a node that is stopping; it has no effect.
    static let nodeStopping = Problem(
        409, "node-stopping", "The node is stopping",
        "A stopping node cannot return to service. Nothing was done.")

    /// Returns the problem of an invalid body of an admin request.
    static func invalidAdminBody(_ fault: RequestBodyError) -> Problem {
        var status: UInt16 = 422
        if case .invalidJSON = fault { status = 400 }
        return Problem(
            status, "admin-body", "Invalid request body",
            fault.message + " Nothing was done.")
    }

    /// Problem of a method other than GET and HEAD for the data port's own resources.
    static let methodNotAllowed = notAllowed("Only GET and HEAD are served.", "GET, HEAD")

    /// Returns the problem of a method that an admin path does not allow.
    static func methodNotAllowed(allowed: String) -> Problem {
        notAllowed("Only \(allowed.replacing(", ", with: " and ")) can be used here.", allowed)
    }

    /// Returns the problem of a method that a site does not allow; `methods` are those it allows.
    static func methodNotAllowed(_ methods: [String]) -> Problem {
        let list = methods.joined(separator: ", ")
        return notAllowed("The site accepts \(methods.isEmpty ? "no methods" : list).", list)
    }

    /// Returns the problem of a method that no site serves.
    ///
    /// - Parameters:
    ///   - method: the name of the method.
    ///   - methods: the methods of the site; empty if it allows all.
    /// - Returns: a 405, whose Allow lists the methods of the site except `method`; GET, HEAD and
    ///   OPTIONS if there are none.
    static func notServed(_ method: String, _ methods: [String]) -> Problem {
        let others = methods.filter { $0 != method }
        return notAllowed(
            "\(method) is not served.",
            others.isEmpty ? "GET, HEAD, OPTIONS" : others.joined(separator: ", "))
    }

    /// Returns a 405 with this value of Allow.
    private static func notAllowed(_ detail: String, _ allowed: String) -> Problem {
        var problem = Problem(
            405, "method-not-allowed", "The method is not allowed here", detail)
        problem.allowedMethods = allowed
        return problem
    }

    /// Returns the problem of an upgrade that a site does not permit; `protocols` are those that it
    /// permits.
    static func upgradeRefused(_ protocols: [String]) -> Problem {
        let taken = protocols.isEmpty ? "none" : protocols.joined(separator: ", ")
        return Problem(
            501, "upgrade-refused", "The upgrade is refused",
            "The protocol is not forwarded, or the request has a body; the site accepts "
                + "\(taken). The origin was not contacted.")
    }

    /// Problem of a client that has reached its connection limit.
    static let tooManyConnections = Problem(
        429, "too-many-connections", "Too many connections",
        "This client has the maximum number of open connections.",
        retryAfterSeconds: 1, closes: true)

    /// Problem of a PURGE to a site on a node that permits it to no client.
    static let purgeNotAllowed = Problem(
        403, "purge-not-allowed", "PURGE is not allowed here",
        "Nothing was purged, and the origin was not contacted.")

    /// Problem of a PURGE that belongs to no site, on a node that permits it to no client.
    static let purgeNotConfigured: Problem = {
        var problem = Problem(ProblemDocument.purgeNotConfigured)
        problem.allowedMethods = "GET, HEAD"
        return problem
    }()

    /// Problem of a request with only-if-cached without a usable stored response.
    static let notCached = Problem(
        504, "not-cached", "No stored response",
        "The request has only-if-cached, and no stored response may be used for it.")

    /// Problem of a stored response that must be validated and could not be.
    static let notValidated = Problem(
        504, "not-validated", "The stored response could not be validated",
        "The origin failed, and the request does not accept a stored response without validation.")

    /// Problem of a request that has passed through this node before.
    static let loopDetected = Problem(
        508, "loop-detected", "Request loop detected",
        "CDN-Loop or Via show that the request has passed this node: the origin leads back to it.")

    /// Problem of a false If-Match or If-Unmodified-Since.
    static let preconditionFailed = Problem(
        412, "precondition-failed", "A precondition of the request failed",
        "The stored response does not match If-Match or If-Unmodified-Since.")

    /// Returns the problem of ranges that all begin beyond the `size` bytes of the body.
    static func rangeNotSatisfiable(size: UInt64) -> Problem {
        Problem(
            416, "range-not-satisfiable", "Range not satisfiable",
            "None of the requested ranges begins within the \(size) bytes of the body.")
    }

    // MARK: Limits and states of the node

    /// The limit or resource that is exhausted.
    enum Shortage {
        case connections
        case fetches
        /// Fetches of one client, site or origin.
        case fetchShare
        /// Requests that wait for fetches.
        case waiters
        /// Memory for bodies in transit.
        case memory
        /// Time that a request may wait for its response.
        case waitTime
        /// Invalidations that wait for the disk.
        case invalidations
    }

    /// Returns the problem of an operator's removal of a member from the voter set that was
    /// refused.
    static func notForgotten(_ refusal: FenceCoordinator.RemovalRefusal) -> Problem {
        let why =
            switch refusal {
            case .noVoterSet: "This node is not a voter and cannot change the voter set."
            case .notVoters: "It is not a voter, or was already forgotten."
            case .isOwnNode: "It is this node; to remove a running node, stop it."
            case .stillResponding: "It responds; to remove a running node, stop it."
            case .changeInProgress: "Another change of the voter set is in progress; try again."
            case .tooFewResponding(let count, let needed):
                "\(count) of the remaining members respond, and \(needed) are required: name all "
                    + "lost members at once, or start a new voter set (members recover)."
            case .mayLosePurges:
                "A majority is lost, and the remaining members may not know every purge: start a "
                    + "new voter set (members recover), which revalidates each entry once."
            }
        return Problem(409, "member-not-forgotten", "The member was not forgotten", why)
    }

    /// Returns the problem of an exhausted limit or resource of the node.
    static func overloaded(_ shortage: Shortage) -> Problem {
        let what =
            switch shortage {
            case .connections: "The maximum number of connections is open."
            case .fetches: "The maximum number of fetches is running."
            case .fetchShare: "The maximum number of fetches for one client or origin is running."
            case .waiters: "The maximum number of requests is waiting for fetches."
            case .memory: "The memory limit for bodies in transit is reached."
            case .waitTime:
                "The response did not begin to arrive within the time that a request may wait."
            case .invalidations:
                "The maximum number of invalidations is waiting for the disk; nothing was purged."
            }
        var problem = Problem(
            503, "overloaded", "The node is overloaded", what, retryAfterSeconds: 1,
            closes: shortage == .connections)
        problem.counter =
            switch shortage {
            case .connections, .invalidations: nil
            case .fetches: .refusedFetches
            case .fetchShare: .refusedShare
            case .waiters: .refusedWaiters
            case .memory: .refusedMemory
            case .waitTime: .refusedWaitTime
            }
        return problem
    }
}
