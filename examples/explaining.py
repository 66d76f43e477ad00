"""
Explaining a prediction
=======================

At each boundary between two neighbouring ranks, the score of a text is a sum: the intercept, plus a
contribution of each word. ``explain`` shows the largest contributions and the sum of the rest;
``top_features`` shows the words with the largest weights.
"""

import matplotlib.pyplot as plt

from rankplane import NPSVOR, TextVectorizer, datasets

made = datasets.load("generated")
vectorizer = TextVectorizer()
model = NPSVOR(C=0.1).fit(vectorizer.fit_transform(made.texts), made.ranks)
names = vectorizer.get_feature_names_out()

# %%
# Why three or four stars, and not two or five?

text = "We use it every day. The screen is excellent. The battery disappoints. The manual is okay."
sample = vectorizer.transform([text])
print("predicted:", model.predict(sample)[0], "stars")
explanation = model.explain(sample, names, top=4)[0]
print(explanation)

# %%
# One boundary as a picture. The bars add up to the score.

boundary = explanation.boundaries[2]
terms = [
    *boundary.up,
    *boundary.down,
    ("all other words", boundary.rest),
    ("intercept", boundary.bias),
]
terms.sort(key=lambda term: term[1])
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.barh(
    [name for name, _ in terms],
    [value for _, value in terms],
    color=["C0" if value > 0 else "C3" for _, value in terms],
)
axis.axvline(0, color="grey", linewidth=1)
axis.set(
    xlabel=f"contribution to the score ({boundary.score:+.2f} in total)",
    title=f"{boundary.upper} or more stars above zero, {boundary.lower} or fewer below",
)
plt.show()

# %%
# The words with the largest weights at each boundary:

for features in model.top_features(names, n=3):
    up = ", ".join(name for name, _ in features.up)
    down = ", ".join(name for name, _ in features.down)
    print(f"{features.lower}|{features.upper}  up: {up}   down: {down}")
