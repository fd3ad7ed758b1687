import NIOCore
import NIOPosix

/// An HTTP/1.1 origin on the loopback whose responses the test defines, with a request log.
///
/// Responses are written only as fast as the peer accepts them: for a stalled peer the origin holds
/// a few hundred kilobytes at most. Stops on release.
package final class ScriptedOrigin: Sendable {
    let state: ScriptedOriginState
    private let listener: any Channel
    private let connections: ConnectionList
    /// The listening address, without the port.
    package let host: String
    package let port: Int

    /// Starts an origin.
    ///
    /// - Parameters:
    ///   - host: The listening address.
    ///   - port: The port; 0 for a free one.
    ///   - space: The network namespace of the address; `nil` for that of this process.
    ///   - requestsPerConnection: Number of responses after which a connection is closed without
    ///     announcement.
    ///   - keepsLog: False to drop each request once its response is sent, for endless loads.
    ///   - sendBufferBytes: Size of the kernel's send buffer for each connection.
    /// - Throws: A system error if the port cannot be opened.
    package init(
        host: String = "127.0.0.1", port: Int = 0, in space: NetworkNamespace? = nil,
        requestsPerConnection: Int? = nil, keepsLog: Bool = true, sendBufferBytes: Int? = nil
    ) throws {
        DescriptorLimit.raise()
        let originState = ScriptedOriginState(keepsLog: keepsLog)
        let connections = ConnectionList()
        var bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 4_096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(
                .writeBufferWaterMark, value: .init(low: 64 * 1_024, high: 256 * 1_024))
        if let sendBufferBytes {
            bootstrap = bootstrap.childChannelOption(
                .socketOption(.so_sndbuf), value: .init(sendBufferBytes))
        }
        bootstrap = bootstrap.childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                connections.add(channel)
                let handler = ScriptedOriginConnection(
                    channel: channel, originState: originState,
                    number: originState.connectionOpened(),
                    requestsMax: requestsPerConnection)
                try channel.pipeline.syncOperations.addHandler(handler)
            }
        }
        if let space {
            let bound = try space.perform { try Socket.bound(to: host) }
            listener = try bootstrap.withBoundSocket(bound).wait()
        } else {
            listener = try bootstrap.bind(host: host, port: port).wait()
        }
        self.host = host
        self.state = originState
        self.connections = connections
        self.port = listener.localAddress?.port ?? 0
    }

    deinit {
        listener.close(promise: nil)
        connections.closeAll()
    }

    /// Returns the absolute URL of a path on this origin.
    package func url(_ path: String) -> String {
        "http://\(host):\(port)\(path)"
    }

    /// Sets the handler of requests for `path` (with any query); it runs on the connection's loop.
    package func on(
        _ path: String, _ route: @escaping @Sendable (OriginRequest) -> OriginResponse
    ) {
        state.state.update { $0.routes[path] = route }
    }

    /// Sets the handler of requests for paths without their own handler.
    package func onAnyOtherPath(_ route: @escaping @Sendable (OriginRequest) -> OriginResponse) {
        state.state.update { $0.fallbackRoute = route }
    }

    /// Compares the bodies of requests for `path` with an image instead of keeping them.
    package func expectBody(_ image: TestImage, at path: String) {
        state.state.update { $0.expectedBodies[path] = image }
    }

    /// Sets a fixed response to requests for `path`.
    package func on(_ path: String, _ response: OriginResponse) {
        on(path) { _ in response }
    }

    /// Serves an image at `/<its name>`, with validators if given; conditional requests get 304.
    ///
    /// - Parameters:
    ///   - image: The image.
    ///   - fields: Further field lines, on 200 and on 304.
    ///   - etag: The entity tag with its quotes.
    ///   - lastModified: The date in HTTP's format.
    /// - Returns: The path.
    @discardableResult
    package func serve(
        _ image: TestImage, fields: [String] = [], etag: String? = nil, lastModified: String? = nil
    ) -> String {
        let path = "/" + image.name
        var all = fields
        if let etag { all.append("ETag: " + etag) }
        if let lastModified { all.append("Last-Modified: " + lastModified) }
        let (whole, notModified) = (
            OriginResponse(image, fields: all), OriginResponse.notModified(all)
        )
        on(path) { request in
            if let etag, request.fields["If-None-Match"] != nil {
                let isMatch = request.fields.members("If-None-Match").contains(etag)
                return isMatch ? notModified : whole
            }
            guard let lastModified, request.fields["If-Modified-Since"] == lastModified else {
                return whole
            }
            return notModified
        }
        return path
    }

    /// Serves an image at these paths until the box holds true, and then another one.
    ///
    /// With `hasTags` each image has an entity tag, and matching conditional requests get 304.
    package func serve(
        _ old: TestImage, then new: TestImage, at paths: [String], hasTags: Bool = true,
        fields: [String]
    ) -> LockedBox<Bool> {
        let isEdited = LockedBox(false)
        for path in paths {
            on(path) { request in
                let (image, tag) = isEdited.value ? (new, "\"new\"") : (old, "\"old\"")
                let all = fields + (hasTags ? ["ETag: \(tag)"] : [])
                let isKnown = hasTags && request.fields["If-None-Match"] == tag
                return isKnown ? .notModified(all) : OriginResponse(image, fields: all)
            }
        }
        return isEdited
    }

    /// Closes the port and every connection; later connection attempts are refused.
    package func stop() {
        listener.close(promise: nil)
        connections.closeAll()
        _ = try? listener.closeFuture.wait()
    }
}

/// The open channels of an origin.
private final class ConnectionList: Sendable {
    private let channels = Monitor([ObjectIdentifier: any Channel]())

    func add(_ channel: any Channel) {
        let key = ObjectIdentifier(channel as AnyObject)
        channels.update { $0[key] = channel }
        channel.closeFuture.whenComplete { [channels] _ in
            channels.update { $0[key] = nil }
        }
    }

    func closeAll() {
        for channel in channels.read({ Array($0.values) }) { channel.close(promise: nil) }
    }
}

extension ScriptedOrigin {
    /// All requests so far, in order of arrival.
    package var log: [OriginRequest] { state.state.read(\.requests) }

    /// Returns the requests for one path.
    package func requests(_ path: String) -> [OriginRequest] {
        log.filter { $0.path == path }
    }

    /// Returns the body of a request so far; empty and complete if it has none.
    package func body(of request: OriginRequest) -> OriginRequestBody {
        state.state.read(\.bodies)[request.number] ?? OriginRequestBody(isComplete: true)
    }

    /// Waits until at least `count` body bytes of a request for `path` have arrived.
    package func waitForBody(_ count: Int, _ path: String, seconds: Double = 30) -> Bool {
        state.state.wait(until: .seconds(seconds)) { state in
            state.requests.contains { request in
                request.path == path && (state.bodies[request.number]?.byteCount ?? 0) >= count
            }
        }
    }

    /// Received heads that were no valid request.
    package var malformedHeads: [String] { state.state.read(\.malformed) }

    /// Number of connections accepted so far.
    package var connectionsOpened: Int { state.state.read(\.connectionsOpened) }

    /// Number of connections open now.
    package var connectionsOpen: Int { state.state.read(\.connectionsOpen.count) }

    /// Body bytes accepted by the kernel, over all connections.
    package var bodyBytesSent: Int { state.state.read { $0.bodyBytesSent.values.reduce(0, +) } }

    /// Waits until at least `count` requests for `path` have arrived.
    package func waitForRequests(_ count: Int, _ path: String, seconds: Double = 30) -> Bool {
        state.state.wait(until: .seconds(seconds)) { state in
            state.requests.count { $0.path == path } >= count
        }
    }

    /// Waits until at most `count` connections are open.
    package func waitForConnections(atMost count: Int, seconds: Double = 30) -> Bool {
        state.state.wait(until: .seconds(seconds)) { $0.connectionsOpen.count <= count }
    }

    /// Waits until the kernel has accepted at least `count` body bytes.
    package func waitForBodyBytes(_ count: Int, seconds: Double = 30) -> Bool {
        state.state.wait(until: .seconds(seconds)) {
            $0.bodyBytesSent.values.reduce(0, +) >= count
        }
    }
}
