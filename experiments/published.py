"""What the paper reports, transcribed from its tables: facts to stand beside what is measured here."""

from typing import NamedTuple


class Statistics(NamedTuple):
    rows: int
    columns: int
    entries: int
    ranks: int
    rows_per_rank: int


# Data statistics.
STATISTICS = {
    "AmazonMp3": Statistics(10_391, 65_487, 1_004_435, 5, 2_078),
    "Video": Statistics(22_281, 119_793, 1_754_092, 5, 4_456),
    "Tablets": Statistics(35_166, 201_061, 3_095_663, 5, 7_033),
    "Mobilephone": Statistics(69_891, 265_432, 5_041_894, 5, 13_978),
    "Cameras": Statistics(138_011, 654_268, 14_308_676, 5, 27_602),
    "TripAdvisor": Statistics(65_326, 404_778, 8_687_561, 5, 13_065),
    "DoctorQuality": Statistics(119_879, 325_448, 7_265_259, 5, 23_975),
    "Treebank": Statistics(11_856, 8_569, 98_883, 5, 2_371),
    "MovieReview": Statistics(5_007, 55_020, 961_379, 4, 1_251),
    "YelpReview": Statistics(1_121_671, 3_138_663, 102_232_013, 5, 224_334),
    "LargeMovie": Statistics(50_000, 309_362, 6_588_192, 8, 6_250),
    "Electronics": Statistics(409_041, 1_422_181, 37_303_259, 5, 81_808),
    "HealthCare": Statistics(82_251, 283_542, 5_201_794, 5, 16_450),
    "AppsAndroid": Statistics(220_566, 253_932, 6_602_522, 5, 44_113),
    "HomeKitchen": Statistics(120_856, 427_558, 8_473_465, 5, 24_171),
}

# NPSVOR by its two prediction functions.
RANKERS_MAE = {
    "AmazonMp3": {"r_old": 0.511, "r_new": 0.508},
    "Video": {"r_old": 0.401, "r_new": 0.39},
    "Tablets": {"r_old": 0.302, "r_new": 0.299},
    "Mobilephone": {"r_old": 0.41, "r_new": 0.404},
    "Cameras": {"r_old": 0.249, "r_new": 0.247},
    "TripAdvisor": {"r_old": 0.366, "r_new": 0.364},
    "DoctorQuality": {"r_old": 0.731, "r_new": 0.727},
    "Treebank": {"r_old": 0.83, "r_new": 0.827},
    "MovieReview": {"r_old": 0.424, "r_new": 0.424},
    "YelpReview": {"r_old": 0.382, "r_new": 0.379},
    "LargeMovie": {"r_old": 1.046, "r_new": 1.022},
    "Electronics": {"r_old": 0.551, "r_new": 0.548},
    "HealthCare": {"r_old": 0.617, "r_new": 0.612},
    "AppsAndroid": {"r_old": 0.598, "r_new": 0.594},
    "HomeKitchen": {"r_old": 0.543, "r_new": 0.538},
}


RANKERS_MSE = {
    "AmazonMp3": {"r_old": 0.72, "r_new": 0.707},
    "Video": {"r_old": 0.543, "r_new": 0.541},
    "Tablets": {"r_old": 0.412, "r_new": 0.406},
    "Mobilephone": {"r_old": 0.548, "r_new": 0.554},
    "Cameras": {"r_old": 0.328, "r_new": 0.322},
    "TripAdvisor": {"r_old": 0.452, "r_new": 0.447},
    "DoctorQuality": {"r_old": 1.304, "r_new": 1.292},
    "Treebank": {"r_old": 1.242, "r_new": 1.23},
    "MovieReview": {"r_old": 0.452, "r_new": 0.452},
    "YelpReview": {"r_old": 0.475, "r_new": 0.466},
    "LargeMovie": {"r_old": 2.274, "r_new": 2.163},
    "Electronics": {"r_old": 0.775, "r_new": 0.767},
    "HealthCare": {"r_old": 0.954, "r_new": 0.941},
    "AppsAndroid": {"r_old": 0.879, "r_new": 0.868},
    "HomeKitchen": {"r_old": 0.766, "r_new": 0.78},
}

# Kernel models, and linear NPSVOR, on small subsets.
SMALL_MAE = {
    "AmazonMp3": {"SVC": 0.803, "SVR": 0.8, "SVOR": 0.761, "RedSVM": 0.761, "NPSVOR": 0.745, "linear NPSVOR": 0.748},
    "Video": {"SVC": 0.679, "SVR": 0.737, "SVOR": 0.674, "RedSVM": 0.674, "NPSVOR": 0.651, "linear NPSVOR": 0.647},
    "Tablets": {"SVC": 0.582, "SVR": 0.666, "SVOR": 0.58, "RedSVM": 0.579, "NPSVOR": 0.563, "linear NPSVOR": 0.564},
    "Mobilephone": {"SVC": 0.62, "SVR": 0.697, "SVOR": 0.624, "RedSVM": 0.623, "NPSVOR": 0.607, "linear NPSVOR": 0.607},
    "Cameras": {"SVC": 0.752, "SVR": 0.815, "SVOR": 0.728, "RedSVM": 0.729, "NPSVOR": 0.738, "linear NPSVOR": 0.739},
    "TripAdvisor": {"SVC": 0.515, "SVR": 0.62, "SVOR": 0.563, "RedSVM": 0.563, "NPSVOR": 0.518, "linear NPSVOR": 0.521},
    "DoctorQuality": {"SVC": 1.24, "SVR": 1.086, "SVOR": 1.082, "RedSVM": 1.08, "NPSVOR": 1.059, "linear NPSVOR": 1.061},
    "Treebank": {"SVC": 1.009, "SVR": 0.933, "SVOR": 0.924, "RedSVM": 0.976, "NPSVOR": 0.928, "linear NPSVOR": 0.93},
    "MovieReview": {"SVC": 0.616, "SVR": 0.569, "SVOR": 0.56, "RedSVM": 0.558, "NPSVOR": 0.562, "linear NPSVOR": 0.56},
    "YelpReview": {"SVC": 0.747, "SVR": 0.946, "SVOR": 0.892, "RedSVM": 0.87, "NPSVOR": 0.791, "linear NPSVOR": 0.792},
    "LargeMovie": {"SVC": 1.36, "SVR": 1.374, "SVOR": 1.286, "RedSVM": 1.286, "NPSVOR": 1.198, "linear NPSVOR": 1.198},
    "Electronics": {"SVC": 0.899, "SVR": 0.892, "SVOR": 0.84, "RedSVM": 0.841, "NPSVOR": 0.816, "linear NPSVOR": 0.819},
    "HealthCare": {"SVC": 0.866, "SVR": 0.866, "SVOR": 0.82, "RedSVM": 0.82, "NPSVOR": 0.801, "linear NPSVOR": 0.801},
    "AppsAndroid": {"SVC": 0.909, "SVR": 0.891, "SVOR": 0.824, "RedSVM": 0.824, "NPSVOR": 0.832, "linear NPSVOR": 0.835},
    "HomeKitchen": {"SVC": 0.901, "SVR": 1.022, "SVOR": 0.97, "RedSVM": 0.971, "NPSVOR": 0.914, "linear NPSVOR": 0.9},
}


SMALL_MSE = {
    "AmazonMp3": {"SVC": 1.501, "SVR": 1.125, "SVOR": 1.127, "RedSVM": 1.127, "NPSVOR": 1.073, "linear NPSVOR": 1.083},
    "Video": {"SVC": 1.115, "SVR": 0.993, "SVOR": 0.896, "RedSVM": 0.895, "NPSVOR": 0.875, "linear NPSVOR": 0.872},
    "Tablets": {"SVC": 0.916, "SVR": 0.833, "SVOR": 0.746, "RedSVM": 0.743, "NPSVOR": 0.727, "linear NPSVOR": 0.727},
    "Mobilephone": {"SVC": 1.009, "SVR": 0.919, "SVOR": 0.827, "RedSVM": 0.829, "NPSVOR": 0.809, "linear NPSVOR": 0.812},
    "Cameras": {"SVC": 1.251, "SVR": 1.094, "SVOR": 0.955, "RedSVM": 0.956, "NPSVOR": 0.982, "linear NPSVOR": 0.988},
    "TripAdvisor": {"SVC": 0.757, "SVR": 0.755, "SVOR": 0.698, "RedSVM": 0.699, "NPSVOR": 0.64, "linear NPSVOR": 0.639},
    "DoctorQuality": {"SVC": 2.701, "SVR": 1.78, "SVOR": 1.779, "RedSVM": 1.777, "NPSVOR": 1.765, "linear NPSVOR": 1.774},
    "Treebank": {"SVC": 1.858, "SVR": 1.421, "SVOR": 1.38, "RedSVM": 1.74, "NPSVOR": 1.441, "linear NPSVOR": 1.462},
    "MovieReview": {"SVC": 0.758, "SVR": 0.627, "SVOR": 0.618, "RedSVM": 0.616, "NPSVOR": 0.629, "linear NPSVOR": 0.627},
    "YelpReview": {"SVC": 1.381, "SVR": 1.404, "SVOR": 1.29, "RedSVM": 1.25, "NPSVOR": 1.063, "linear NPSVOR": 1.069},
    "LargeMovie": {"SVC": 4.462, "SVR": 3.051, "SVOR": 2.752, "RedSVM": 2.752, "NPSVOR": 2.618, "linear NPSVOR": 2.616},
    "Electronics": {"SVC": 1.779, "SVR": 1.305, "SVOR": 1.256, "RedSVM": 1.257, "NPSVOR": 1.187, "linear NPSVOR": 1.198},
    "HealthCare": {"SVC": 1.735, "SVR": 1.274, "SVOR": 1.285, "RedSVM": 1.285, "NPSVOR": 1.233, "linear NPSVOR": 1.26},
    "AppsAndroid": {"SVC": 1.758, "SVR": 1.286, "SVOR": 1.224, "RedSVM": 1.224, "NPSVOR": 1.212, "linear NPSVOR": 1.224},
    "HomeKitchen": {"SVC": 1.736, "SVR": 1.557, "SVOR": 1.465, "RedSVM": 1.466, "NPSVOR": 1.342, "linear NPSVOR": 1.328},
}

# Linear models.
LINEAR_MAE = {
    "AmazonMp3": {"SVC": 0.595, "SVR": 0.561, "RedSVM": 0.556, "NPSVOR": 0.508},
    "Video": {"SVC": 0.436, "SVR": 0.445, "RedSVM": 0.464, "NPSVOR": 0.39},
    "Tablets": {"SVC": 0.325, "SVR": 0.344, "RedSVM": 0.363, "NPSVOR": 0.299},
    "Mobilephone": {"SVC": 0.442, "SVR": 0.463, "RedSVM": 0.464, "NPSVOR": 0.404},
    "Cameras": {"SVC": 0.269, "SVR": 0.296, "RedSVM": 0.29, "NPSVOR": 0.247},
    "TripAdvisor": {"SVC": 0.405, "SVR": 0.443, "RedSVM": 0.429, "NPSVOR": 0.364},
    "DoctorQuality": {"SVC": 0.793, "SVR": 0.86, "RedSVM": 0.803, "NPSVOR": 0.727},
    "Treebank": {"SVC": 0.937, "SVR": 0.823, "RedSVM": 0.803, "NPSVOR": 0.827},
    "MovieReview": {"SVC": 0.474, "SVR": 0.449, "RedSVM": 0.429, "NPSVOR": 0.424},
    "YelpReview": {"SVC": 0.462, "SVR": 0.469, "RedSVM": 0.462, "NPSVOR": 0.379},
    "LargeMovie": {"SVC": 1.213, "SVR": 1.213, "RedSVM": 1.13, "NPSVOR": 1.022},
    "Electronics": {"SVC": 0.611, "SVR": 0.619, "RedSVM": 0.632, "NPSVOR": 0.548},
    "HealthCare": {"SVC": 0.645, "SVR": 0.68, "RedSVM": 0.695, "NPSVOR": 0.612},
    "AppsAndroid": {"SVC": 0.656, "SVR": 0.667, "RedSVM": 0.665, "NPSVOR": 0.594},
    "HomeKitchen": {"SVC": 0.613, "SVR": 0.599, "RedSVM": 0.633, "NPSVOR": 0.538},
}


LINEAR_MSE = {
    "AmazonMp3": {"SVC": 1.095, "SVR": 0.757, "RedSVM": 0.755, "NPSVOR": 0.707},
    "Video": {"SVC": 0.756, "SVR": 0.591, "RedSVM": 0.62, "NPSVOR": 0.541},
    "Tablets": {"SVC": 0.551, "SVR": 0.447, "RedSVM": 0.472, "NPSVOR": 0.406},
    "Mobilephone": {"SVC": 0.746, "SVR": 0.607, "RedSVM": 0.608, "NPSVOR": 0.554},
    "Cameras": {"SVC": 0.435, "SVR": 0.38, "RedSVM": 0.378, "NPSVOR": 0.322},
    "TripAdvisor": {"SVC": 0.625, "SVR": 0.533, "RedSVM": 0.521, "NPSVOR": 0.447},
    "DoctorQuality": {"SVC": 1.763, "SVR": 1.348, "RedSVM": 1.374, "NPSVOR": 1.292},
    "Treebank": {"SVC": 1.701, "SVR": 1.175, "RedSVM": 1.159, "NPSVOR": 1.23},
    "MovieReview": {"SVC": 0.565, "SVR": 0.465, "RedSVM": 0.454, "NPSVOR": 0.452},
    "YelpReview": {"SVC": 0.559, "SVR": 0.58, "RedSVM": 0.559, "NPSVOR": 0.466},
    "LargeMovie": {"SVC": 3.651, "SVR": 2.531, "RedSVM": 2.368, "NPSVOR": 2.163},
    "Electronics": {"SVC": 1.112, "SVR": 0.86, "RedSVM": 0.866, "NPSVOR": 0.767},
    "HealthCare": {"SVC": 1.333, "SVR": 1.032, "RedSVM": 1.058, "NPSVOR": 0.941},
    "AppsAndroid": {"SVC": 1.22, "SVR": 0.929, "RedSVM": 0.936, "NPSVOR": 0.868},
    "HomeKitchen": {"SVC": 1.126, "SVR": 0.831, "RedSVM": 0.866, "NPSVOR": 0.78},
}

# Training times at the best C, in seconds, on a Xeon E5504 at 2.0 GHz.
SECONDS = {
    "AmazonMp3": {"SVC": 0.167, "SVR": 0.043, "RedSVM": 0.205, "NPSVOR": 0.128},
    "Video": {"SVC": 0.544, "SVR": 0.085, "RedSVM": 0.372, "NPSVOR": 0.27},
    "Tablets": {"SVC": 1.307, "SVR": 0.162, "RedSVM": 0.664, "NPSVOR": 0.496},
    "Mobilephone": {"SVC": 2.305, "SVR": 0.333, "RedSVM": 1.544, "NPSVOR": 1.103},
    "Cameras": {"SVC": 11.854, "SVR": 1.193, "RedSVM": 5.348, "NPSVOR": 3.352},
    "TripAdvisor": {"SVC": 4.488, "SVR": 0.511, "RedSVM": 1.892, "NPSVOR": 1.257},
    "DoctorQuality": {"SVC": 3.135, "SVR": 0.289, "RedSVM": 1.612, "NPSVOR": 2.286},
    "Treebank": {"SVC": 0.012, "SVR": 0.006, "RedSVM": 0.01, "NPSVOR": 0.061},
    "MovieReview": {"SVC": 0.077, "SVR": 0.025, "RedSVM": 0.065, "NPSVOR": 0.074},
    "YelpReview": {"SVC": 57.501, "SVR": 16.044, "RedSVM": 28.862, "NPSVOR": 32.389},
    "LargeMovie": {"SVC": 5.815, "SVR": 0.283, "RedSVM": 0.952, "NPSVOR": 1.362},
    "Electronics": {"SVC": 34.508, "SVR": 4.746, "RedSVM": 10.462, "NPSVOR": 11.319},
    "HealthCare": {"SVC": 2.84, "SVR": 0.47, "RedSVM": 1.603, "NPSVOR": 0.945},
    "AppsAndroid": {"SVC": 6.013, "SVR": 0.493, "RedSVM": 1.757, "NPSVOR": 1.998},
    "HomeKitchen": {"SVC": 5.446, "SVR": 0.833, "RedSVM": 2.205, "NPSVOR": 2.422},
}
# The average ranks as printed.
SMALL_RANKS = {
    "mae": {"SVC": 4.6, "SVR": 5.467, "SVOR": 3.2, "RedSVM": 3.267, "NPSVOR": 1.933, "linear NPSVOR": 2.267},
    "mse": {"SVC": 5.933, "SVR": 4.467, "SVOR": 3.067, "RedSVM": 3.267, "NPSVOR": 1.8, "linear NPSVOR": 2.067},
}
LINEAR_RANKS = {
    "mae": {"SVC": 2.533, "SVR": 3.267, "RedSVM": 3.0, "NPSVOR": 1.133},
    "mse": {"SVC": 3.867, "SVR": 2.467, "RedSVM": 2.467, "NPSVOR": 1.133},
}

# The share of each set that the table of small subsets takes.
SMALL_SHARES = {
    "AmazonMp3": 0.1,
    "Video": 0.1,
    "Tablets": 0.1,
    "Mobilephone": 0.1,
    "Cameras": 0.01,
    "TripAdvisor": 0.1,
    "DoctorQuality": 0.1,
    "Treebank": 1.0,
    "MovieReview": 1.0,
    "YelpReview": 0.001,
    "LargeMovie": 0.1,
    "Electronics": 0.01,
    "HealthCare": 0.1,
    "AppsAndroid": 0.01,
    "HomeKitchen": 0.01,
}
