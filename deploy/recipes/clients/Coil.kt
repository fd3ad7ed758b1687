// Coil (3): images through a node. Not compiled here: Coil needs the Android SDK.
// `signed` is the URL from the server (deploy/recipes/sign.*); the key stays on the server.

import android.content.Context
import androidx.compose.runtime.Composable
import androidx.compose.ui.platform.LocalContext
import coil3.ImageLoader
import coil3.compose.AsyncImage
import coil3.network.cachecontrol.CacheControlCacheStrategy
import coil3.network.okhttp.OkHttpNetworkFetcherFactory
import coil3.request.ImageRequest

/** A loader that obeys the node's Cache-Control (io.coil-kt.coil3:coil-network-cache-control). */
fun imageLoader(context: Context) = ImageLoader.Builder(context)
    .components { add(OkHttpNetworkFetcherFactory(cacheStrategy = { CacheControlCacheStrategy() })) }
    .build()

/** A signed URL changes with its expiry; the image's own URL is the key in both caches. */
@Composable
fun Photo(image: String, signed: String, description: String) = AsyncImage(
    model = ImageRequest.Builder(LocalContext.current)
        .data(signed)
        .memoryCacheKey(image)
        .diskCacheKey(image)
        .build(),
    contentDescription = description,
)
