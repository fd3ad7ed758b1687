/// The traps that stay, by why no bytes from outside reach them.
extension TrapRule {
    static let exceptions: [Exception] = [
        Exception(
            reason: "Made once, from settings that were checked or from constants.",
            files: [
                "Cluster/Journal/Journal": 4, "Cluster/Members/Membership": 1,
                "Cluster/Peers/Link/PeerLink": 1, "Cluster/Peers/Messages/Hello": 1,
                "Cluster/Ring/Ring": 1, "Cluster/Touches/Touch": 1,
                "Cluster/Touches/TouchQueue": 1, "HTTPRules/Forwarding/ResponseFieldRules": 3,
                "HTTPRules/Sites/SiteTable": 1,
                "NodeConfiguration/DescriptorBudget": 1,
                "NodeConfiguration/Settings/SettingKey": 1,
                "Front/Admin/Dashboard": 1, "Front/Admin/AdminHandler": 1,
                "Front/EventLoop/EventLoopContext": 1,
                "Front/Requests/RequestIDGenerator": 1, "Store/Disk/DiskWriterState": 1,
                "Store/Memory/MemoryStore": 1, "Store/Memory/MemoryStore+Eviction": 1,
                "Tiers/Memory/FrequencySketch": 1, "Wire/Crypto/HMACKey": 1,
                "Wire/HTTP1/FieldTable": 2, "Wire/TLS/TicketKeys": 1,
            ]),
        Exception(
            reason: "The order of calls, which no bytes choose.",
            files: [
                "Cluster/Fence/VoterSetConsensus": 1, "Cluster/Journal/JournalRecovery": 1,
                "Cluster/Members/MemberList": 1, "Cluster/Peers/Link/PeerLink+Receiving": 1,
                "Cluster/Peers/Messages/InvalidationMessageDecoder": 1,
                "Front/Connections/TLSHandler": 1, "Front/Lookup/FetchTable": 1,
                "Front/Requests/PendingResponse+Body": 1, "Front/NodeCore": 1,
                "Front/Peers/PeerRequestHandler": 1,
                "Origin/Admission/OriginAdmission+Connections": 1,
                "Origin/Admission/QuotaTable": 1, "Origin/Connections/OriginConnection": 1,
                "Origin/Connections/OriginConnectionPool": 1, "Origin/OriginFetchRequest": 2,
                "Origin/OriginTransaction+Connecting": 1, "Serving/Lookup/Fetch": 4,
                "Store/Disk/JournalFiles": 1, "Store/Disk/Log/DiskLog+Reclaim": 1,
                "Store/Disk/Log/DiskLog+Storing": 1, "Store/Disk/Log/SegmentFiles": 1,
                "Store/Disk/Log/SegmentWriter": 1,
                "Store/Marks/InvalidationIndex": 1, "Tiers/Disk/SegmentAllocator": 9,
                "Tiers/Disk/SegmentRecovery": 2, "Tiers/Marks/VersionCounts": 1,
                "Wire/HTTP2/HTTP2Session": 2, "Wire/TLS/TLSSession+Data": 1,
            ]),
        Exception(
            reason: "Places and sizes that were reckoned here, from what is held.",
            files: [
                "Cluster/Ring/Ring": 3, "Cluster/Ring/RingSlot": 1,
                "Front/Requests/HeadWriter": 4, "Store/Disk/DiskVolume": 1,
                "Store/Memory/MemoryAccount": 1, "Store/Memory/MemoryShard": 2,
                "Store/Memory/StoredBody": 3, "Tiers/Disk/DiskIndex": 2,
                "Tiers/Memory/BodyLayout": 1, "Tiers/Memory/EntryIndex": 2,
                "Wire/HTTP1/BodyDecoder": 1, "Wire/HTTP1/RequestParser": 2,
                "Wire/HTTP1/ResponseParser": 1, "Wire/HTTP2/HTTP2ServerSession": 1,
            ]),
        Exception(
            reason: "Values that are bounded where they are read; fuzzers run both.",
            files: [
                "Cluster/Invalidation/InvalidationMessage": 1,
                "Cluster/Invalidation/InvalidationRecord": 2,
                "Cluster/Invalidation/InvalidationStream": 1, "Cluster/Journal/JournalItem": 2,
                "Cluster/Members/Member": 1, "Ground/EntryDigest": 1,
                "HTTPRules/Purges/TokenDigest": 1, "HTTPRules/Signed/Signature": 1,
                "HTTPRules/Tracing/TraceContext": 1, "Tiers/Disk/DiskEntry": 2,
                "Wire/TLS/TLSSession+Handshake": 1,
            ]),
        Exception(
            reason: "Frames and fields that are written here, of parts that are bounded.",
            files: [
                "Cluster/Peers/Frames/PeerFrameHeader": 1, "Cluster/Peers/Frames/StreamFrames": 1,
                "Cluster/Peers/Messages/Goodbye": 1, "Cluster/Peers/Messages/Gossip": 1,
                "Cluster/Peers/Messages/MemberSummary": 1,
            ]),
        Exception(
            reason: "A library that has no memory, or is broken.",
            files: [
                "Wire/Crypto/HMACKey": 3, "Wire/Crypto/SHA256": 1,
                "Wire/HTTP2/NGHTTP2Library": 1, "Wire/TLS/TLSSession": 2,
                "Wire/TLS/TicketKeys": 2,
            ]),
    ]
}
