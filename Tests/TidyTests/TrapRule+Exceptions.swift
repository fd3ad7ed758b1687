/// The traps that stay, by why no bytes from outside reach them.
extension TrapRule {
    static let exceptions: [Exception] = [
        Exception(
            reason: "Made once, from settings that were checked or from constants.",
            files: [
                "Cluster/Journal/Journal": 4, "Cluster/Members/Membership": 1,
                "Cluster/Peers/Hello": 1, "Cluster/Peers/PeerLink": 1,
                "Cluster/Ring/RingFigures": 1, "Cluster/TouchQueue": 1, "Cluster/TouchTable": 1,
                "HTTPRules/Shared/AnswerFieldRules": 3, "HTTPRules/Sites/SiteTable": 1,
                "Node/Admin/Dashboard": 1, "Node/Admin/Door+Admin": 1,
                "Node/Configuration+Help": 2, "Node/ConfigurationValues": 2,
                "Node/DescriptorBudget": 1, "Node/Hall": 1, "Node/RequestNames": 1,
                "Node/Sites/SiteOption+Apply": 1, "Store/Disk/DiskWork": 1,
                "Store/Memory/EvictionFigures": 1, "Store/Memory/MemoryStore": 1,
                "Tiers/Memory/FrequencySketch": 1, "Wire/FieldTable": 2, "Wire/TLS/TicketKeys": 1,
                "Wire/URLSigner": 1,
            ]),
        Exception(
            reason: "The order of calls, which no bytes choose.",
            files: [
                "Cluster/Fence/CountedMembers": 1, "Cluster/Journal/JournalRecovery": 1,
                "Cluster/Members/Roster": 1, "Cluster/Peers/InvalidationReader": 1,
                "Cluster/Peers/PeerLink+Receiving": 1, "Node/Doors/Door+Transfer": 1,
                "Node/Doors/TLSHandler": 1, "Node/Lookup/FillTable": 1,
                "Node/NodeCore": 2, "Node/Peers/PeerAnswering": 1,
                "Origin/OriginConnection": 1, "Origin/OriginFetchRequest": 2,
                "Origin/OriginGate": 1, "Origin/OriginHop+Connecting": 1, "Origin/OriginPool": 1,
                "Origin/ShareTable": 1, "Serving/Lookup/Fill": 4, "Store/Disk/DiskLog+Append": 3,
                "Store/Disk/DiskLog+Reclaim": 2,
                "Store/Disk/JournalFiles": 1, "Store/Disk/SegmentFiles": 1,
                "Store/Marks/MarkBook": 1, "Tiers/Disk/SegmentLedger": 9,
                "Tiers/Disk/SegmentRecovery": 2, "Tiers/Disk/StampCounts": 1,
                "Wire/HTTP2/HTTP2Session": 2, "Wire/TLS/TLSSession+Data": 1,
            ]),
        Exception(
            reason: "Places and sizes that were reckoned here, from what is held.",
            files: [
                "Cluster/Ring/Ring": 3, "Cluster/Ring/RingSlot": 1, "Node/Doors/HeadWriter": 4,
                "Store/Disk/DiskVolume": 1, "Store/Memory/Body": 1,
                "Store/Memory/FillReservation": 1, "Store/Memory/GrowingBody": 2,
                "Store/Memory/MemoryShard": 2, "Tiers/Disk/DiskIndex": 2,
                "Tiers/Memory/BodyLayout": 1, "Tiers/Memory/EntryIndex": 2, "Wire/BodyDecoder": 1,
                "Wire/HTTP2/HTTP2ServerSession": 1, "Wire/RequestParser": 2,
                "Wire/ResponseParser": 1,
            ]),
        Exception(
            reason: "Values that are bounded where they are read; fuzzers run both.",
            files: [
                "Cluster/Invalidation/InvalidationRecord": 2, "Cluster/Invalidation/NumberRuns": 1,
                "Cluster/Invalidation/StreamRange": 1, "Cluster/Journal/JournalItem": 2,
                "Cluster/Members/Member": 1, "Ground/EntryDigest": 1,
                "HTTPRules/Purges/TokenDigest": 1, "HTTPRules/Signed/Signature": 1,
                "HTTPRules/Tracing/TraceContext": 1, "Tiers/Disk/DiskEntry": 2,
                "Wire/TLS/TLSSession+Handshake": 1,
            ]),
        Exception(
            reason: "Frames and fields that are written here, of parts that are bounded.",
            files: [
                "Cluster/Peers/Goodbye": 1, "Cluster/Peers/Gossip": 1,
                "Cluster/Peers/PeerFrameHead": 1, "Cluster/Peers/StreamFrames": 1,
                "HTTPRules/StructuredFields/StructuredBareItem": 3,
            ]),
        Exception(
            reason: "A library that has no memory, or is broken.",
            files: [
                "Wire/HMACKey": 3, "Wire/HTTP2/HTTP2Session+Library": 1, "Wire/SHA256": 1,
                "Wire/TLS/TLSSession": 2, "Wire/TLS/TicketKeyBox": 2,
            ]),
    ]
}
