import HTTPRules

/// What a client wants to have first (RFC 9218 §4).
struct StreamPriority: Hashable {
    /// 0 is the most urgent, 7 the least.
    var urgency: UInt32 = 3
    /// The answer is of use in parts: streams of one urgency share the connection.
    var isIncremental = false

    /// The priority that the value of the field or of PRIORITY_UPDATE says; nil if it is malformed.
    ///
    /// Members that are unknown or out of range are as if they were not there.
    init?(_ value: Span<UInt8>) {
        guard let dictionary = StructuredDictionary(value) else { return nil }
        if case .integer(let urgency)? = dictionary["u"]?.bareItem, 0...7 ~= urgency {
            self.urgency = UInt32(urgency)
        }
        if case .boolean(let flag)? = dictionary["i"]?.bareItem { isIncremental = flag }
    }
}

/// Priorities that came for streams before their requests.
struct PendingPriorities {
    /// A browser sends them for what it is about to ask for; more than this is not kept.
    private static let countMax = 32

    private var list: [(stream: Int32, priority: StreamPriority)] = []

    mutating func set(_ stream: Int32, _ priority: StreamPriority) {
        list.removeAll { $0.stream == stream }
        if list.count < Self.countMax { list.append((stream, priority)) }
    }

    /// That of a stream which begins now; those of lower ids can be of no use any more.
    mutating func take(_ stream: Int32) -> StreamPriority? {
        guard !list.isEmpty else { return nil }
        let priority = list.first { $0.stream == stream }?.priority
        list.removeAll { $0.stream <= stream }
        return priority
    }
}
